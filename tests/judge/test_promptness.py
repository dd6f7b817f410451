"""Whoever is to wake promptly goes before others for as long as that takes, and no longer."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

import pytest

from kernel_smith.evaluation.judge.processes.promptness import prompt


def in_a_thread(function: Callable[[], Any]) -> Any:
    """Policies are a thread's own: that of the tests stays as it is."""
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(function()))
    thread.start()
    thread.join()
    (answer,) = answers
    return answer


def policy() -> tuple[int, int]:
    return os.sched_getscheduler(0), os.getpriority(os.PRIO_PROCESS, threading.get_native_id())


def set_policy(number: int) -> None:
    os.sched_setscheduler(0, number, os.sched_param(int(number == os.SCHED_FIFO)))


def may_go_first() -> bool:
    try:
        set_policy(os.SCHED_FIFO)
    except PermissionError:
        return False
    return True


ALLOWED = in_a_thread(may_go_first)


def before_within_and_after() -> list[tuple[int, int]]:
    os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), 3)
    seen = [policy()]
    with prompt():
        seen.append(policy())
    return [*seen, policy()]


@pytest.mark.skipif(not ALLOWED, reason="not allowed to go before others")
def test_a_thread_goes_before_others_meanwhile_and_is_then_as_it_was() -> None:
    before, within, after = in_a_thread(before_within_and_after)
    assert before[0] == os.SCHED_OTHER
    assert within[0] == os.SCHED_FIFO
    assert after == before


def test_where_that_is_not_allowed_it_stays_among_them(monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.sched_setscheduler

    def refuse(pid: int, number: int, param: os.sched_param) -> None:
        if number == os.SCHED_FIFO:
            raise PermissionError
        real(pid, number, param)

    monkeypatch.setattr(os, "sched_setscheduler", refuse)
    before, within, after = in_a_thread(before_within_and_after)
    assert before == within == after


@pytest.mark.skipif(not ALLOWED, reason="not allowed to go before others")
def test_who_goes_before_others_already_still_does_afterwards() -> None:
    def within() -> int:
        set_policy(os.SCHED_FIFO)
        with prompt():
            pass
        return os.sched_getscheduler(0)

    assert in_a_thread(within) == os.SCHED_FIFO


@pytest.mark.skipif(not ALLOWED, reason="not allowed to go before others")
def test_an_error_ends_it_too() -> None:
    def failing() -> int:
        with pytest.raises(ZeroDivisionError), prompt():
            raise ZeroDivisionError
        return os.sched_getscheduler(0)

    assert in_a_thread(failing) == os.SCHED_OTHER
