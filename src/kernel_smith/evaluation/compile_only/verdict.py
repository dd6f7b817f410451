"""From how the confined process ended, and what it left behind, to stage and reason."""

from __future__ import annotations

import re
import signal
from typing import NamedTuple

from kernel_smith.evaluation.compile_only.answer import Answer, CompiledKernel, Outcome
from kernel_smith.evaluation.compile_only.targets import Target
from kernel_smith.records import Reason

_ERROR_IN_LOG = re.compile(r"candidate\.py\"?:(\d+):\d+\)?: error: (.+)")
_FILE_IN_SANDBOX = re.compile(r"(?:/[^\s/\"':]+)*/?\bcandidate\.py\b")
_LOG_TAIL = 6000


class Ending(NamedTuple):
    """How the process ended: its exit status, None if it was stopped, and what it printed."""

    status: int | None
    log: str


class Verdict(NamedTuple):
    """No reason: the candidate compiles."""

    reason: Reason | None
    message: str = ""


def decide(answer: Answer | None, ending: Ending, target: Target, name: str) -> Verdict:
    """The outcome that the process reports counts only if it also ended well."""
    phase = answer.phase if answer else "load"
    if ending.status is None:
        return _stopped(phase)
    if ending.status != 0:
        return _died(phase, ending.status)
    if answer is None or answer.outcome is None:
        return Verdict(Reason.PROTOCOL_VIOLATION, "it left no report that can be read")
    if answer.outcome.kind == "done":
        return _done(answer, target)
    return _failed(answer, answer.outcome, ending.log, name)


def fits(kernel: CompiledKernel, target: Target) -> bool:
    threads = kernel.warps * target.warp
    return kernel.shared_bytes <= target.shared_bytes and threads <= target.threads_per_block


def readable_log(outcome: Outcome | None, log: str, name: str) -> str:
    """Traceback and output, with the candidate under its own name."""
    text = f"{outcome.traceback if outcome else ''}\n{log[-_LOG_TAIL:]}".strip()
    return _FILE_IN_SANDBOX.sub(lambda found: name, text)


def _stopped(phase: str) -> Verdict:
    if phase.startswith("compiling "):
        return Verdict(Reason.COMPILER_TIMEOUT, f"stopped while {phase}")
    if phase == "forward":
        return Verdict(Reason.CALL_TIMEOUT, "forward did not return")
    return Verdict(Reason.LOAD_TIMEOUT)


def _died(phase: str, status: int) -> Verdict:
    known = {member.value: member.name for member in signal.Signals}
    how = f"exited with status {status}"
    if status < 0:
        how = f"killed by {known.get(-status, f'signal {-status}')}"
    if status == -signal.SIGKILL:
        return Verdict(Reason.MEMORY_LIMIT, f"{how}: it took more memory or processes than allowed")
    if phase.startswith("compiling "):
        return Verdict(Reason.COMPILER_REJECTED, f"the compiler crashed while {phase}: {how}")
    return Verdict(Reason.CRASHED if phase == "forward" else Reason.LOAD_CRASHED, how)


def _done(answer: Answer, target: Target) -> Verdict:
    launched = [kernel for kernel in answer.kernels if kernel.launches]
    if not any(kernel.line is not None for kernel in launched):
        return Verdict(Reason.NO_AUTHORED_KERNEL, "forward launches no kernel of the candidate")
    too_large = [kernel.name for kernel in launched if not fits(kernel, target)]
    if too_large:
        return Verdict(Reason.OUT_OF_RESOURCES, f"{too_large[0]} does not fit on {target.name}")
    return Verdict(None)


def _failed(answer: Answer, outcome: Outcome, log: str, name: str) -> Verdict:
    message = _FILE_IN_SANDBOX.sub(lambda found: name, outcome.message)
    if outcome.kind == "compiler":
        return Verdict(Reason.COMPILER_REJECTED, _first_error(answer, log, name) or message)
    if outcome.kind == "resources":
        return Verdict(Reason.OUT_OF_RESOURCES, message)
    if outcome.kind == "memory":
        return Verdict(Reason.MEMORY_LIMIT, message)
    if outcome.kind == "signature":
        return Verdict(Reason.WRONG_SIGNATURE, message)
    if answer.phase == "task":
        return Verdict(Reason.LOAD_EXCEPTION, f"the task's own code failed: {message}")
    return Verdict(
        Reason.EXCEPTION if answer.phase == "forward" else Reason.LOAD_EXCEPTION, message
    )


def _first_error(answer: Answer, log: str, name: str) -> str:
    """Triton's front end reports lines itself; its passes print them."""
    if not answer.failures:
        return ""
    last = answer.failures[-1]
    if last.line is not None:
        return f"{name}:{last.line}: {last.message}"
    printed = _ERROR_IN_LOG.search(log)
    return f"{name}:{printed[1]}: {printed[2]}" if printed else last.message
