"""A trial: run a function in a confined process, under a monitor, and bring back its result."""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from kernel_smith.errors import InternalError
from kernel_smith.evaluation.sandbox.confine.apply import confine
from kernel_smith.evaluation.sandbox.confine.namespaces import die_with_parent, enter_namespaces
from kernel_smith.evaluation.sandbox.confine.policy import Policy
from kernel_smith.evaluation.sandbox.confine.report import Report


@dataclass(frozen=True)
class Outcome:
    report: Report
    """Of the monitor and of the confined process together."""
    value: Any
    """What the function returned, as JSON has it; None if it did not return."""
    error: str | None
    """The exception that ended the function."""
    exit_code: int
    """Of the confined process; negative: the signal that ended it."""


def run_confined(
    function: Callable[[], object],
    policy: Policy,
    *,
    prepare: Callable[[], object] = lambda: None,
) -> Outcome:
    """Run `function` under `policy`. `prepare` runs first, in the monitor, unconfined."""
    receiver, sender = os.pipe()
    monitor = _fork()
    if monitor == 0:
        os.close(receiver)
        _run_and_exit(lambda: _be_monitor(function, policy, prepare, sender))
    os.close(sender)
    with open(receiver, encoding="utf-8") as channel:
        messages = [json.loads(line) for line in channel]
    os.waitpid(monitor, 0)
    return _outcome(messages)


def _be_monitor(
    function: Callable[[], object],
    policy: Policy,
    prepare: Callable[[], object],
    sender: int,
) -> None:
    prepare()
    die_with_parent()
    _send(sender, {"report": asdict(enter_namespaces())})
    confined = _fork()
    if confined == 0:
        _run_and_exit(lambda: _be_confined(function, policy, sender))
    _, status = os.waitpid(confined, 0)
    _send(sender, {"exit_code": os.waitstatus_to_exitcode(status)})


def _be_confined(function: Callable[[], object], policy: Policy, sender: int) -> None:
    _send(sender, {"report": asdict(confine(policy, keep_fds={sender}))})
    try:
        _send(sender, {"value": function()})
    except BaseException as error:
        _send(sender, {"error": f"{type(error).__name__}: {error}"})


def _outcome(messages: list[dict[str, Any]]) -> Outcome:
    reports = [message["report"] for message in messages if "report" in message]
    merged = {name: value for message in messages for name, value in message.items()}
    if "exit_code" not in merged:
        raise InternalError("the monitor ended before the process that it guards")
    return Outcome(
        report=sum((Report(tuple(r["enforced"]), tuple(r["missing"])) for r in reports), Report()),
        value=merged.get("value"),
        error=merged.get("error"),
        exit_code=merged["exit_code"],
    )


def _send(descriptor: int, message: dict[str, object]) -> None:
    os.write(descriptor, json.dumps(message).encode() + b"\n")


def _run_and_exit(action: Callable[[], None]) -> NoReturn:
    status = 1
    try:
        action()
        status = 0
    finally:
        os._exit(status)


def _fork() -> int:
    with warnings.catch_warnings():
        # Newer Pythons warn if other threads exist: the children run nothing that needs them.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
