"""What a run looks like at a terminal: a live panel, plain lines where output is piped, or JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.live import Live
from rich.table import Table
from rich.text import Text

from kernel_smith.cli.output import errors
from kernel_smith.cli.runs_text import sparkline
from kernel_smith.records import (
    ConfirmationBegun,
    Elite,
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
from kernel_smith.store.facts import curve_by_evaluation

_LATEST = 8
_FUNNEL = ("proposed", "compiled", "correct", "honest", "faster")


@contextmanager
def audience(*, as_json: bool, quiet: bool) -> Iterator[Audience]:
    """Whoever watches: called with every event and the state after it."""
    if as_json:
        yield _print_event
    elif quiet:
        yield lambda event, state: None
    elif errors.is_terminal:
        panel = _Panel()
        with Live(console=errors, refresh_per_second=4, get_renderable=panel.render):
            yield panel.see
    else:
        yield lambda event, state: _print_line(event, state, errors.out)


def _print_event(event: Event, state: RunState) -> None:
    json.dump(event.model_dump(mode="json"), sys.stdout)
    sys.stdout.write("\n")
    sys.stdout.flush()


def _print_line(event: Event, state: RunState, say: Callable[[str], None]) -> None:
    line = describe(event, state)
    if line:
        say(line)


def describe(event: Event, state: RunState) -> str:
    """One line for one event; nothing for those that only prepare another."""
    match event:
        case StepEvaluated():
            who = state.steps[event.step].proposal.proposer
            return f"{event.step:4d}  {who:8s} {_end(event)}  {_what(state, event.step)}"
        case StepDropped():
            return f"{event.step:4d}  {event.proposer:8s} dropped: {event.why}"
        case Noted():
            return f"      {event.worker:8s} noted: {' '.join(event.note.text.split())[:60]}"
        case ConfirmationBegun():
            return f"      measuring {event.candidate[:8]} at full length, which chooses nobody"
        case Remeasured():
            return _measured_again(event)
        case RunEnded():
            return f"ended: {event.why}"
        case RunStarted():
            return f"run {event.run}"
        case RunResumed():
            return f"run {state.run}, from step {state.last_step + 1} on"
    return ""


def _measured_again(event: Remeasured) -> str:
    timing, name = event.evaluation.timing, event.candidate[:8]
    if event.confirming:
        shown = [describe_shown(each) for each in timing.speedups] if timing else []
        return f"      at full length: {name} {'; '.join(shown) or headline(event.evaluation)}"
    again = describe_speedup(timing.speedup, timing.speedups[0].baseline) if timing else ""
    return f"      measured again: {name} {again}"


def _end(event: StepEvaluated) -> str:
    evaluation = event.evaluation
    if evaluation.ok and evaluation.timing is not None:
        speedup = evaluation.timing.speedup
        return f"{speedup.value:6.2f}x [{speedup.low:.2f}, {speedup.high:.2f}]"
    return f"{evaluation.stage.value}: {evaluation.reason.value if evaluation.reason else ''}"


def _what(state: RunState, number: int) -> str:
    step = state.steps[number]
    best = state.best
    mark = " *" if best is not None and best.candidate == step.proposal.candidate else ""
    return step.proposal.summary.splitlines()[0][:60] + mark if step.proposal.summary else mark


def curve(state: RunState) -> str:
    """The best speedup so far, from the first evaluation to the last."""
    values = curve_by_evaluation(state)
    return sparkline(values) if values else ""


def describe_best(best: Elite | None) -> str:
    if best is None or best.evaluation.timing is None:
        return "none yet"
    timing = best.evaluation.timing
    return describe_speedup(timing.speedup, timing.speedups[0].baseline)


class _Panel:
    def __init__(self) -> None:
        self._begin = time.monotonic()
        self._state: RunState | None = None
        self._lines: list[str] = []

    def see(self, event: Event, state: RunState) -> None:
        self._state = state
        line = describe(event, state)
        if line:
            self._lines = [*self._lines, line][-_LATEST:]

    def render(self) -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True, overflow="ellipsis")
        state = self._state
        if state is None:
            table.add_row("starting: the first program is being evaluated")
            return table
        spent = time.monotonic() - self._begin
        table.add_row(Text(f"best   {describe_best(state.best)}", style="bold"))
        table.add_row(Text(f"curve  {curve(state)}"))
        funnel = "  ".join(f"{name} {state.funnel[name]}" for name in _FUNNEL)
        table.add_row(Text(f"steps  {funnel}"))
        busy = min(1.0, state.device_seconds / max(spent, 1e-9))
        asked = "  ".join(f"{name} {count}" for name, count in state.by_proposer.items())
        table.add_row(Text(f"by     {asked}  ·  busy {busy:.0%}  ·  {spent:.0f} s"))
        usage = state.usage
        if usage.requests:
            tokens = f"{usage.prompt_tokens + usage.completion_tokens:,} tokens"
            table.add_row(Text(f"model  {tokens}, ${usage.dollars:.2f}"))
        for line in self._lines:
            table.add_row(Text(line, style="dim"))
        return table
