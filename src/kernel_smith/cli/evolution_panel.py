"""The live panel of a run: what is known, what is happening now, and what is left of the budget."""

from __future__ import annotations

import time
from collections.abc import Callable

from rich.console import Console, ConsoleOptions, RenderResult
from rich.table import Table
from rich.text import Text

from kernel_smith.cli.runs_text import sparkline
from kernel_smith.records import (
    ConfirmationBegun,
    Elite,
    Event,
    Remeasured,
    RunEnded,
    Stage,
    StepEvaluated,
    StepProposed,
    score,
)
from kernel_smith.records.counts import counted
from kernel_smith.records.prose import describe_speedup
from kernel_smith.runs.state import RunState
from kernel_smith.store.facts import curve_by_evaluation

_LATEST = 8
_FUNNEL = ("proposed", "compiled", "correct", "honest", "faster")
_NARROWEST_CURVE, _WIDEST_CURVE = 10, 120
_FEW = 3  # evaluations from which their pace can be told

Describe = Callable[[Event, RunState], str]


def describe_best(best: Elite | None) -> str:
    if best is None or best.evaluation.timing is None:
        return "none yet"
    timing = best.evaluation.timing
    return describe_speedup(timing.speedup, timing.speedups[0].baseline)


class Panel:
    """`see` every event; rich renders it as often as it likes.

    `describe` says an event in a line.
    """

    def __init__(self, describe: Describe) -> None:
        self._describe = describe
        self._begin = time.monotonic()
        self._state: RunState | None = None
        self._lines: list[Text] = []
        self._confirming: str | None = None
        self._ended = False

    def see(self, event: Event, state: RunState) -> None:
        self._state = state
        if isinstance(event, ConfirmationBegun):
            self._confirming = event.candidate
        elif isinstance(event, Remeasured | StepProposed):
            self._confirming = None
        self._ended = isinstance(event, RunEnded)
        line = self._describe(event, state)
        if line:
            self._lines = [*self._lines, Text(line, style=colour_of(event))][-_LATEST:]

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        yield self.render(options.max_width)

    def render(self, width: int) -> Table:
        table = Table.grid(padding=(0, 1))
        table.add_column(no_wrap=True, overflow="ellipsis")
        state = self._state
        if state is None:
            table.add_row("starting: the first program is being evaluated")
            return table
        spent = time.monotonic() - self._begin
        table.add_row(Text(f"best   {describe_best(state.best)}", style="bold"))
        table.add_row(Text(f"curve  {curve(state, width - 7)}"))
        table.add_row(Text(f"now    {self._now(state)}", style="cyan"))
        table.add_row(Text(f"left   {left(state, None if self._ended else spent)}"))
        funnel = "  ".join(f"{name} {state.funnel[name]}" for name in _FUNNEL)
        table.add_row(Text(f"steps  {funnel}"))
        busy = min(1.0, state.device_seconds / max(spent, 1e-9))
        asked = "  ".join(f"{name} {count}" for name, count in state.by_proposer.items())
        table.add_row(Text(f"by     {asked}  ·  busy {busy:.0%}  ·  {in_minutes(spent)}"))
        usage = state.usage
        if usage.requests:
            tokens = f"{usage.prompt_tokens + usage.completion_tokens:,} tokens"
            table.add_row(Text(f"model  {tokens}, ${usage.dollars:.2f}"))
        for line in self._lines:
            table.add_row(line)
        return table

    def _now(self, state: RunState) -> str:
        """Return what is under way."""
        if self._ended:
            return f"ended: {state.ended}"
        if self._confirming is not None:
            return f"measuring {step_name(state, self._confirming)} at full length"
        again = [f"measuring {step_name(state, name)} again" for name in state.ranking.challenges]
        steps = [
            f"evaluating step {step.number}, by {step.proposal.proposer}: "
            f"{first_line(step.proposal.summary)}"
            for step in state.in_flight()
        ]
        return "; ".join([*again, *steps]) or "waiting for the next proposal"


def colour_of(event: Event) -> str:
    """Green: faster than eager for certain. Red: not correct, or caught. Dim: all else."""
    if not isinstance(event, StepEvaluated | Remeasured):
        return "dim"
    if not event.evaluation.ok and event.evaluation.stage is not Stage.UNSTABLE:
        return "red"
    return "green" if score(event.evaluation) > 1 else "dim"


def curve(state: RunState, width: int = 60) -> str:
    """Return the best speedup so far, from the first evaluation to the last."""
    values = curve_by_evaluation(state)
    places = min(_WIDEST_CURVE, max(_NARROWEST_CURVE, width))
    return sparkline(values, places) if values else ""


def left(state: RunState, spent: float | None) -> str:
    """Return what is left of the budget, and about how long that takes. `spent`: seconds so far;
    None: the run has ended, and nothing will take any longer."""
    budget, evaluated = state.config.budget, state.funnel["evaluated"]
    parts, seconds = [], []
    if budget.evaluations is not None:
        more = max(0, budget.evaluations - evaluated)
        parts.append(f"{more} of {counted(budget.evaluations, 'evaluation')}")
        if evaluated >= _FEW and spent is not None:
            seconds.append(more * spent / evaluated)
    if budget.seconds is not None and spent is not None:
        seconds.append(max(0.0, budget.seconds - state.seconds))
    if budget.tokens is not None:
        used = state.usage.prompt_tokens + state.usage.completion_tokens
        parts.append(f"{max(0, budget.tokens - used):,} of {budget.tokens:,} tokens")
    if budget.dollars is not None:
        parts.append(f"${max(0.0, budget.dollars - state.usage.dollars):.2f}")
    if budget.plateau is not None:
        parts.append(f"ends after {max(0, budget.plateau - state.since_best)} more without a gain")
    if seconds:
        parts.append(f"about {in_minutes(min(seconds))}")
    return "  ·  ".join(parts) or "no limit"


def in_minutes(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"


def step_name(state: RunState, candidate: str) -> str:
    """`step 8` for the first step with this program."""
    for step in state.steps_about(candidate):
        if step.proposal.candidate.content_hash == candidate:
            return f"step {step.number}"
    return f"candidate {candidate[:8]}"


def first_line(text: str) -> str:
    return text.splitlines()[0] if text.strip() else "no word about it"
