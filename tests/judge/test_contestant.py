"""When processes for the next candidate are started, while there is one already."""

from __future__ import annotations

from contextlib import nullcontext
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernel_smith.evaluation.judge.contestant import Contestant
from kernel_smith.evaluation.judge.journal import Journal
from kernel_smith.records import Candidate, Options


class Platform:
    """Starts nothing, and notes what it was asked to."""

    is_gpu = True

    def __init__(self) -> None:
        self.asked: list[str] = []

    def compiler(self, *_: object) -> Any:
        return SimpleNamespace(armed=None, provide=None, build_ahead=lambda: None)

    def launch(self, *_: object) -> Any:
        return SimpleNamespace()

    def look_ahead(self, *_: object) -> None:
        self.asked.append("look ahead")

    def retire(self, *_: object) -> None:
        self.asked.append("retire")


@pytest.fixture
def platform() -> Platform:
    return Platform()


@pytest.fixture
def contestant(platform: Platform) -> Contestant[Any]:
    task = cast(Any, SimpleNamespace(workloads=()))
    candidate = Candidate(source="", backend="triton")
    journal = Journal(lambda _: None, lambda _: nullcontext())
    return Contestant(cast(Any, platform), task, candidate, Options(), journal)


@pytest.mark.parametrize("is_large", [False, True], ids=["small", "large"])
def test_a_context_waits_beside_large_calls_only_when_they_are_over(
    contestant: Contestant[Any], platform: Platform, is_large: bool
) -> None:
    contestant.compile(cast(Any, None), cast(Any, None))
    contestant.check(cast(Any, SimpleNamespace(is_large=is_large)))
    assert platform.asked == ([] if is_large else ["look ahead"])
    platform.asked.clear()
    contestant.close()
    assert platform.asked == ["retire", "look ahead"]


def test_for_one_that_was_never_compiled_none_is_started(
    contestant: Contestant[Any], platform: Platform
) -> None:
    contestant.close()
    assert platform.asked == ["retire"]
