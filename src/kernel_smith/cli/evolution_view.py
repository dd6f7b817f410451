"""What a run looks like at a terminal: a live panel, plain lines where output is piped, or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.live import Live

from kernel_smith.cli.evolution_panel import Panel, step_name
from kernel_smith.cli.output import errors
from kernel_smith.records import (
    ConfirmationBegun,
    Event,
    Noted,
    Remeasured,
    RunEnded,
    RunResumed,
    RunStarted,
    StepDropped,
    StepEvaluated,
)
from kernel_smith.records.prose import describe_shown, describe_speedup, headline
from kernel_smith.runs.loop import Audience
from kernel_smith.runs.state import RunState

_LONGEST_SUMMARY = 160  # on a terminal, what does not fit is left out


@contextmanager
def audience(*, as_json: bool, quiet: bool) -> Iterator[Audience]:
    """Whoever watches: called with every event and the state after it."""
    if as_json:
        yield _print_event
    elif quiet:
        yield lambda event, state: None
    elif errors.is_terminal:
        panel = Panel(describe)
        with Live(panel, console=errors, refresh_per_second=4):
            yield panel.see
    else:
        yield lambda event, state: _print_line(event, state, errors.print)


def _print_event(event: Event, state: RunState) -> None:
    json.dump(event.model_dump(mode="json"), sys.stdout)
    sys.stdout.write("\n")
    sys.stdout.flush()


def _print_line(event: Event, state: RunState, say: Callable[[str], None]) -> None:
    line = describe(event, state)
    if line:
        say(line)


def describe(event: Event, state: RunState) -> str:
    """Return one line for one event; nothing for those that only prepare another."""
    match event:
        case StepEvaluated():
            who = state.steps[event.step].proposal.proposer
            return f"{event.step:4d}  {who:8s} {_end(event, state)}  {_what(state, event.step)}"
        case StepDropped():
            return f"{event.step:4d}  {event.proposer:8s} dropped: {event.why}"
        case Noted():
            return f"      {event.worker:8s} noted: {' '.join(event.note.text.split())[:60]}"
        case ConfirmationBegun():
            name = step_name(state, event.candidate)
            return f"      measuring {name} once more, at full length, to confirm it"
        case Remeasured():
            return _measured_again(event, step_name(state, event.candidate))
        case RunEnded():
            return f"ended: {event.why}"
        case RunStarted():
            return f"run {event.run}"
        case RunResumed():
            return f"run {state.run}, from step {state.last_step + 1} on"
    return ""


def _measured_again(event: Remeasured, name: str) -> str:
    timing = event.evaluation.timing
    if event.confirming:
        shown = [describe_shown(each) for each in timing.speedups] if timing else []
        return f"      at full length: {name} {'; '.join(shown) or headline(event.evaluation)}"
    again = describe_speedup(timing.speedup, timing.speedups[0].baseline) if timing else ""
    return f"      measured again: {name} {again}"


def _end(event: StepEvaluated, state: RunState) -> str:
    evaluation = event.evaluation
    if evaluation.ok and evaluation.timing is not None:
        speedup = evaluation.timing.speedup
        shown = f"{speedup.value:6.2f}x [{speedup.low:.2f}, {speedup.high:.2f}]"
        if evaluation.twin is not None:
            shown += f" (compiles to the same as {step_name(state, evaluation.twin)})"
        return shown
    return f"{evaluation.stage.value}: {evaluation.reason.value if evaluation.reason else ''}"


def _what(state: RunState, number: int) -> str:
    step = state.steps[number]
    best = state.best
    mark = " *" if best is not None and best.candidate == step.proposal.candidate else ""
    summary = step.proposal.summary.strip()
    return summary.splitlines()[0][:_LONGEST_SUMMARY] + mark if summary else mark
