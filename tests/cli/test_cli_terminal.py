"""What a terminal says while a run goes on, and in the end: now, what is left, what to do."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kernel_smith.cli import evolution_view, output
from kernel_smith.cli.confirmation_text import advice
from kernel_smith.cli.evolution_panel import Panel, colour_of, left
from kernel_smith.cli.evolution_view import describe
from kernel_smith.cli.output import broken
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    BaselineSpeedup,
    Budget,
    Candidate,
    ConfirmationBegun,
    Evaluation,
    Event,
    Interval,
    Note,
    Noted,
    Proposal,
    Reason,
    Remeasured,
    RunConfig,
    RunEnded,
    RunStarted,
    Stage,
    StepEvaluated,
    StepProposed,
    Task,
)
from kernel_smith.records.counts import counted
from kernel_smith.runs.state import RunState

NOW = datetime(2026, 1, 1, tzinfo=UTC)
TASK = Task(name="slow", source="class Model: ...")
KERNEL = Path("slow_best.py")


def program(number: int) -> Candidate:
    return Candidate(source=f"class ModelNew:\n    x = {number}\n")


def proposed(number: int) -> StepProposed:
    proposal = Proposal(candidate=program(number), proposer="tuner", summary=f"unroll by {number}")
    return StepProposed(step=number, proposal=proposal, at=NOW + timedelta(seconds=number))


def evaluated(number: int, speed: float) -> StepEvaluated:
    judged = made_up(TASK, program(number), speed)
    return StepEvaluated(step=number, evaluation=judged, seconds=1.0, at=NOW)


def against(**speedups: tuple[float, float, float]) -> Evaluation:
    judged = made_up(TASK, program(0), 1.0, baselines=tuple(speedups))
    assert judged.timing is not None
    shown = tuple(
        BaselineSpeedup(baseline=name, speedup=Interval(value=value, low=low, high=high))
        for name, (value, low, high) in speedups.items()
    )
    return judged.model_copy(
        update={"timing": judged.timing.model_copy(update={"speedups": shown})}
    )


def after(*events: Event, **budget: Any) -> tuple[RunState, Panel]:
    config = RunConfig(backend="cpp", proposers={"tuner": 1.0}, budget=Budget(**budget))
    started = RunStarted(run="slow-1", task=TASK, config=config, at=NOW)
    state, panel = RunState.begin(started), Panel(describe)
    panel.see(started, state)
    for event in events:
        state.apply(event)
        panel.see(event, state)
    return state, panel


def line_of(panel: Panel, title: str, width: int = 140) -> str:
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(panel)
    assert isinstance(console.file, io.StringIO)
    lines = console.file.getvalue().splitlines()
    return next(line for line in lines if line.startswith(title)).strip()


def test_the_panel_says_what_is_happening_now() -> None:
    begun = (proposed(0), evaluated(0, 1.0))
    confirming = ConfirmationBegun(candidate=program(0).content_hash, at=NOW)
    _, idle = after(*begun)
    assert line_of(idle, "now") == "now    waiting for the next proposal"
    _, busy = after(*begun, proposed(1))
    assert line_of(busy, "now") == "now    evaluating step 1, by tuner: unroll by 1"
    _, contender = after(*begun, proposed(1), evaluated(1, 2.0))
    assert line_of(contender, "now") == "now    measuring step 1 again"
    _, last = after(*begun, confirming)
    assert line_of(last, "now") == "now    measuring step 0 at full length"
    _, ended = after(*begun, RunEnded(why="enough", at=NOW))
    assert line_of(ended, "now") == "now    ended: enough"


def test_the_panel_says_what_is_left() -> None:
    steps = [event for n in range(4) for event in (proposed(n), evaluated(n, 1.0))]
    state, _ = after(*steps, evaluations=10, dollars=2.0, plateau=8)
    words = left(state, spent=40.0)
    assert "6 of 10 evaluations" in words and "$2.00" in words
    assert "ends after" in words and "about 1 min 00 s" in words
    assert left(after(*steps)[0], spent=40.0) == "no limit"
    assert "about" in words and "about" not in left(state, spent=None), "a run that has ended"


def test_colours_say_how_a_step_ended() -> None:
    how = {"stage": Stage.INCORRECT, "reason": Reason.WRONG_VALUES, "timing": None}
    wrong = made_up(TASK, program(2), 1.0).model_copy(update=how)
    ends = (evaluated(0, 0.5), evaluated(1, 2.0))
    failed = StepEvaluated(step=2, evaluation=wrong, seconds=1.0, at=NOW)
    assert [colour_of(event) for event in (*ends, failed)] == ["dim", "green", "red"]
    _, panel = after(proposed(0), ends[0], proposed(1), ends[1])
    shown = Console(file=io.StringIO(), width=100, force_terminal=True, color_system="standard")
    shown.print(panel)
    assert isinstance(shown.file, io.StringIO)
    assert "\x1b[32m   1  tuner      2.00x" in shown.file.getvalue()


def test_lines_name_steps_and_no_hashes() -> None:
    begun = (proposed(0), evaluated(0, 1.0))
    again = Remeasured(
        candidate=program(0).content_hash, evaluation=made_up(TASK, program(0), 1.5), at=NOW
    )
    state, _ = after(*begun, again)
    assert describe(again, state).startswith("      measured again: step 0 1.50x")


def test_a_line_says_whose_times_those_of_the_same_machine_code_are() -> None:
    judged = evaluated(1, 1.5)
    known = judged.evaluation.model_copy(update={"twin": program(0).content_hash})
    twin = judged.model_copy(update={"evaluation": known})
    state, _ = after(proposed(0), evaluated(0, 1.5), proposed(1), twin)
    assert "1.50x" in describe(twin, state)
    assert "] (compiles to the same as step 0)  unroll by 1" in describe(twin, state)


def confirmed(evaluation: Evaluation) -> RunState:
    own = evaluation.model_copy(update={"candidate_hash": program(0).content_hash})
    name = program(0).content_hash
    shown = Remeasured(candidate=name, evaluation=own, confirming=True, at=NOW)
    state, _ = after(proposed(0), evaluated(0, 1.0), shown)
    return state


def test_the_last_word_is_to_use_it_or_to_keep_pytorch() -> None:
    both = confirmed(against(eager=(3.6, 3.3, 3.9), compile=(2.0, 1.8, 2.2)))
    assert advice(both, KERNEL) == (
        "Use it: slow_best.py is 3.60 times as fast as eager PyTorch and 2.00 times as fast as "
        "torch.compile."
    )
    slower = confirmed(against(eager=(0.5, 0.45, 0.55), compile=(0.8, 0.7, 0.9)))
    assert advice(slower, KERNEL) == (
        "Keep eager PyTorch: it is 2.00 times as fast as slow_best.py."
    )
    compiled = confirmed(against(eager=(2.0, 1.9, 2.1), compile=(0.8, 0.7, 0.9)))
    assert advice(compiled, KERNEL).startswith("Keep torch.compile: it is 1.25 times as fast")
    open_ = confirmed(against(eager=(2.0, 1.9, 2.1), compile=(1.1, 0.9, 1.3)))
    assert advice(open_, KERNEL).startswith("Keep torch.compile for now: slow_best.py is 2.00")
    unknown, _ = after(proposed(0), evaluated(0, 1.0))
    assert advice(unknown, KERNEL).startswith("Keep PyTorch for now")


def test_counts_are_words() -> None:
    assert [counted(n, "step") for n in (0, 1, 1234)] == ["0 steps", "1 step", "1,234 steps"]
    assert [counted(n, "family", "families") for n in (1, 2)] == ["1 family", "2 families"]


def test_a_list_of_tasks_that_is_piped_has_a_line_for_each(cli: Callable[..., Any]) -> None:
    done = cli("tasks", "list")
    line = next(line for line in done.out.splitlines() if line.startswith("row_softmax "))
    assert line.split()[1] == "softmax" and len(line) > 60
    assert len(done.out.splitlines()) < 60
    described = [line for line in done.out.splitlines()[1:] if not line.startswith("next:")]
    assert all(line.endswith(".") for line in described), "a sentence is cut off"


def test_lines_are_broken_between_words_and_commands_are_not() -> None:
    """A terminal of 80 columns broke them where it ended: `mul` and `tiplied`."""
    line = "best       1.97x at step 6: what torch.compile makes of it, with kernels of our own"
    first, second = broken(line, 60).splitlines()
    assert len(first) <= 60 and second.startswith(" " * 11) and second[11] != " "
    assert f"{first} {second.strip()}" == line
    nested = broken("  sequence: 336 us per call, 99 rounds, 157 checked calls", 40).splitlines()
    assert [len(part) - len(part.lstrip()) for part in nested] == [2, 6]
    command = "hint: kernel-smith resume row_softmax-20261118-202620-1864 --evaluations 100"
    assert broken(command, 40) == command
    path = f"{'a' * 50}/kernel.py"
    assert broken(f"see {path}", 40).splitlines()[-1].strip() == path


@pytest.mark.parametrize("columns", [80, 140])
def test_a_table_fits_the_terminal(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = Console(file=io.StringIO(), width=columns, force_terminal=True, color_system=None)
    monkeypatch.setattr(output, "console", terminal)
    run = "causal_conv1d_silu-20261118-201226-4d37"
    heads = ("run", "task", "state", "evaluations", "best", "confirmed", "started")
    row = (run, "causal_conv1d_silu", "ended", "14", "1.97x", "yes", "2026-11-18 20:12")
    output.print_columns([heads, row], spare=("task", "started"))
    assert isinstance(terminal.file, io.StringIO)
    lines = [line.rstrip() for line in terminal.file.getvalue().splitlines()]
    assert len(lines) == 2 and all(len(line) <= columns for line in lines)
    assert run in lines[1] and "1.97x" in lines[1] and "yes" in lines[1]
    assert ("started" in lines[0]) == (columns == 140)


def test_where_no_width_is_known_something_is_printed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "0")
    screen = output._Output(file=io.StringIO())
    screen.print("what it is about")
    assert shown_by(screen) == "what it is about\n"


@pytest.mark.parametrize("columns", [20, 40])
def test_where_a_table_does_not_fit_names_are_whole_all_the_same(
    columns: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`row_softmax-20261119-1050…` could not be copied, and the last column was not there."""
    screen = terminal(columns)
    monkeypatch.setattr(output, "console", screen)
    run = "causal_conv1d_silu-20261118-201226-4d37"
    heads = ("run", "task", "best", "what")
    row = (run, "causal_conv1d_silu", "1.97x", "what torch.compile makes of it")
    output.print_columns([heads, row], spare=("task",))
    shown = shown_by(screen)
    assert shown.split() == ["run", "best", "what", run, "1.97x", *row[-1].split()]
    assert all(len(line) <= columns for line in shown.splitlines() if run not in line)


def terminal(columns: int = 100) -> output._Output:
    return output._Output(file=io.StringIO(), width=columns, force_terminal=True, color_system=None)


def shown_by(screen: Console) -> str:
    assert isinstance(screen.file, io.StringIO)
    return screen.file.getvalue()


EVIL = "\x1b]0;owned\x1b\\\x9b2J[/]:bug:"
HARMLESS = r"\x1b]0;owned\x1b\\x9b2J[/]:bug:"


def test_what_a_model_says_does_not_reach_the_terminal_as_an_order(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Names of proposers and summaries come from files and models."""
    proposal = Proposal(candidate=program(1), proposer=EVIL, summary=EVIL)
    step = StepProposed(step=1, proposal=proposal, at=NOW)
    note = Noted(worker="model", note=Note(text=EVIL), at=NOW)
    screen = terminal(300)
    monkeypatch.setattr(evolution_view, "errors", screen)
    with evolution_view.audience(as_json=False, quiet=False) as watch:
        state, _ = after()
        for event in (step, note, evaluated(1, 1.5), RunEnded(why=EVIL, at=NOW)):
            state.apply(event)
            watch(event, state)
    said = shown_by(screen)
    for line in ("by     ", "   1  ", "noted: ", "ended: "):
        assert any(line in each and HARMLESS in each for each in said.splitlines()), line
    assert "\x1b]" not in said and "\x9b" not in said


def test_cells_and_progress_are_shown_as_they_are(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("console", "errors"):
        monkeypatch.setattr(output, name, terminal())
    output.print_columns([("task", "what"), (EVIL, EVIL)])
    assert shown_by(output.console).count(HARMLESS) == 2
    with output.progress(quiet=False) as tell:
        tell(EVIL)
    assert HARMLESS in shown_by(output.errors)
    for screen in (output.console, output.errors):
        assert "\x1b]" not in shown_by(screen) and "\x9b" not in shown_by(screen)


def test_a_piped_source_is_printed_to_the_letter(cli: Callable[..., Any], tmp_path: Path) -> None:
    """`[:100:2]` was printed with a picture of a hundred points in it."""
    task = tmp_path / "halves.py"
    task.write_text(
        "import torch\n\nclass Model(torch.nn.Module):\n"
        "    def forward(self, x):\n        return x[:100:2] + x[:, [1]]\n\n"
        "def get_inputs():\n    return [torch.randn(4)]\n"
    )
    assert task.read_text() in cli("tasks", "show", task).out


@pytest.mark.parametrize("is_terminal", [True, False])
def test_only_a_terminal_is_spared_the_characters_of_a_text(
    is_terminal: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(stream, "isatty", lambda: is_terminal)
    monkeypatch.setattr("sys.stdout", stream)
    output.print_text(f"a\tb\n{EVIL}")
    assert stream.getvalue() == f"a\tb\n{HARMLESS if is_terminal else EVIL}"
