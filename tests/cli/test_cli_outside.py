"""`kernel-smith ask` and `tell`, mistakes about stored runs, and how a run looks at a terminal."""

from __future__ import annotations

import io
import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from kernel_smith.cli import outside
from kernel_smith.cli.evolution_panel import Panel, curve
from kernel_smith.cli.evolution_view import describe
from kernel_smith.evaluation import engines
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    Candidate,
    Conversation,
    Event,
    Exemplars,
    Migrated,
    Proposal,
    Reason,
    Remeasured,
    RunEnded,
    RunResumed,
    RunStarted,
    StepDropped,
    StepEvaluated,
    StepProposed,
    Task,
    Usage,
)
from kernel_smith.runs.outside import Assignment
from kernel_smith.runs.presets import find_preset
from kernel_smith.runs.run import Run, fold
from kernel_smith.runs.state import RunState
from kernel_smith.store import Store
from kernel_smith.tasks import find_task
from kernel_smith.testing.trivial import TrivialEngine

Cli = Callable[..., Any]
Start = Callable[..., "subprocess.Popen[str]"]

NOW = datetime(2026, 1, 2, tzinfo=UTC)
SAVED = ("--store", "r.sqlite")


def stored(run: str) -> RunState:
    with Store.open(Path("r.sqlite")) as store:
        return fold(store, store.find_run(run))


def begin(task: Task, *told: tuple[str, float | Reason]) -> str:
    """A stored run that has ended, with made-up evaluations of these programs."""
    with (
        Store.open(Path("r.sqlite"), create=True) as store,
        Run.start(store, task, find_preset("embedded", "cpp")) as run,
    ):
        for source, outcome in told:
            judge = TrivialEngine(lambda _, outcome=outcome: outcome)
            run.tell(Candidate(source=source, name="told.py"), judge, None, "at first")
        run.append(RunEnded(why="for a test", at=datetime.now(UTC)))
        return run.state.run


def wasteful(source: str, turns: int) -> str:
    """The program, with a loop that does nothing before the one that it needs."""
    loop = "{\n    for (int64_t i"
    assert loop in source
    waste = f"{{\n    for (volatile int64_t k = 0; k < {turns}; ++k);\n    for (int64_t i"
    return source.replace(loop, waste)


@pytest.fixture
def task(cli: Cli, slow: Path) -> Task:
    return find_task("slow")


# ---------------------------------------------------------------- ask


def test_ask_shows_the_parent_its_evidence_and_the_answer_to_give(
    cli: Cli, task: Task, honest_source: str
) -> None:
    run = begin(task, (honest_source, 1.5))
    done = cli("ask", run, "--best", *SAVED)
    assert done.code == 0, done.err
    assert Path("slow_parent.py").read_text() == honest_source
    assert "Improve slow_parent.py from step 0, which does task slow (precision" in done.out
    assert "ok: correct, 1.50x" in done.out
    answer = f"kernel-smith tell {run} --candidate FILE --parent 0 --store r.sqlite"
    assert f"next: {answer}" in done.out
    given = Assignment.model_validate(cli("ask", run, *SAVED, "--json").json)
    assert given.request.parent is not None
    assert given.request.parent.candidate.source == honest_source
    assert given.request.task == task
    assert (given.run, given.parent_step) == (run, 0)
    assert "class ModelNew" in given.rules and "kernel_smith.inline import cpp" in given.dialect
    assert given.reference == task.source
    system, user = given.messages
    for text in (given.rules, given.dialect, given.reference.strip()):
        assert text in system.content
    assert honest_source.strip() in user.content


def test_ask_can_be_for_any_step_and_shows_the_prompt_as_a_model_gets_it(
    cli: Cli, task: Task, honest_source: str
) -> None:
    other = honest_source.replace("++i", "i += 1")
    run = begin(task, (honest_source, 1.5), (other, 1.2))
    prompt = cli("ask", run, "--parent", 1, "--prompt", *SAVED).out
    sent = cli("ask", run, "--parent", 1, "--json", *SAVED).json["messages"]
    assert prompt == "".join(f"[{each['role']}]\n{each['content']}\n\n" for each in sent)
    assert other.strip() in prompt and honest_source.strip() not in prompt
    assert "Improve slow_parent.py from step 1," in cli("ask", run, "--parent", 1, *SAVED).out
    cli("ask", run, "--parent", 7, *SAVED).complains(2, "--parent 7: none", "runs show")
    cli("ask", run, "--parent", 1, "--best", *SAVED).complains(2, "--best and --parent", "one")


def test_ask_names_other_programs_by_their_steps(
    cli: Cli, task: Task, honest_source: str, capfd: pytest.CaptureFixture[str]
) -> None:
    run = begin(task, (honest_source, 1.5), (honest_source.replace("++i", "i += 1"), 1.2))
    given = Assignment.model_validate(cli("ask", run, "--parent", 1, "--json", *SAVED).json)
    parent = given.request.parent
    assert parent is not None and given.steps == {parent.candidate.content_hash: 1}
    shown = given.request.model_copy(update={"context": (Exemplars(programs=(parent,)),)})
    outside._print(given.model_copy(update={"request": shown}), Path("parent.py"))
    assert "Another program of the run: step 1, 1.1" in capfd.readouterr().out


class Sobering(TrivialEngine):
    """An engine whose second look at the new program is less kind than the first."""

    def __init__(self, old: str) -> None:
        super().__init__(self._speed)
        self._old, self._looks = old, 0

    def _speed(self, candidate: Candidate) -> float:
        if candidate.source == self._old:
            return 1.5
        self._looks += 1
        return 3.0 if self._looks == 1 else 1.1

    def __enter__(self) -> Sobering:
        return self

    def __exit__(self, *_: object) -> None: ...


def test_tell_shows_the_measuring_that_decided(
    cli: Cli, task: Task, honest_source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = begin(task, (honest_source, 1.5))
    monkeypatch.setattr(engines, "open_engine", lambda *_: Sobering(honest_source))
    Path("mine.py").write_text(honest_source.replace("++i", "i += 1"))
    done = cli("tell", run, "--candidate", "mine.py", "--parent", 0, *SAVED)
    assert done.code == 0, done.err
    at_first, _, again = done.out.partition("It took the lead")
    verdict, following = done.out.splitlines()[-2:]
    assert "ok: correct, 3.00x" in at_first
    assert "\n  this program: 1.10x the speed of eager (95%: " in again
    assert verdict == "The best of the run is step 0."
    assert following.startswith("next: kernel-smith ask")
    Path("mine.py").write_text(honest_source.replace("++i", "i = i + 1"))
    told = cli("tell", run, "--candidate", "mine.py", *SAVED, "--json", "-q").json
    assert (told["step"], told["best_step"]) == (2, 0)
    assert told["measured_again"][0]["step"] == 2


def test_ask_needs_a_program_to_improve(cli: Cli, task: Task, wrong_source: str) -> None:
    for run in (begin(task), begin(task, (wrong_source, Reason.WRONG_VALUES))):
        done = cli("ask", run, *SAVED)
        done.complains(2, "has no program to improve yet", f"tell {run} --candidate FILE", *SAVED)


def test_ask_does_not_write_where_it_cannot(cli: Cli, task: Task, honest_source: str) -> None:
    begin(task, (honest_source, 1.5))
    done = cli("ask", "latest", *SAVED, "-o", "no/where.py")
    done.complains(2, "no/where.py: cannot be written", "-o FILE")


# ---------------------------------------------------------------- tell


def test_a_told_program_is_judged_and_becomes_a_step(
    cli: Cli, quick_runs: None, task: Task, honest_source: str
) -> None:
    run = begin(task, (honest_source, Reason.WRONG_VALUES))
    Path("mine.py").write_text(honest_source.replace("++i", "i += 1"))
    parent = Candidate(source=honest_source).content_hash
    mine = ("--candidate", "mine.py", "--parent", parent[:12], "--summary", "by hand")
    done = cli("tell", run, *mine, *SAVED)
    assert done.code == 0, done.err
    assert "ok: correct, " in done.out
    assert "This is the best of the run so far." in done.out
    assert f"next: kernel-smith ask {run} --store r.sqlite" in done.out
    state = stored(run)
    step = state.steps[state.last_step]
    assert step.proposal.parents == (parent,)
    assert (step.proposal.proposer, step.proposal.summary) == ("outside", "by hand")
    assert state.ended == "for a test", "a step from outside does not begin the run again"
    assert cli("runs", "list", *SAVED, "--json").json["runs"][0]["state"] == "ended"

    cli("tell", run, *mine, *SAVED).complains(2, "part of the run already", "change it")


def test_a_told_program_that_is_wrong_ends_with_one(cli: Cli, quick_runs: None, task: Task) -> None:
    run = begin(task)
    done = cli("tell", run, "--candidate", "wrong.py", *SAVED, "--json", "--quiet")
    assert done.code == 1
    assert done.err == ""
    assert done.json["evaluation"]["reason"] == "wrong-values"
    assert stored(run).steps[done.json["step"]].evaluation is not None


def test_a_told_program_is_kept_when_its_judging_is_interrupted(
    cli: Cli, start_program: Start, task: Task, tmp_path: Path, honest_source: str
) -> None:
    run = begin(task)
    # A call takes most of a second, so that the judge is still at it.
    (tmp_path / "slow.py").write_text(wasteful(honest_source, 300_000_000))
    process = start_program("tell", run, "--candidate", "slow.py", *SAVED)
    assert process.stderr is not None
    assert process.stderr.readline() == "... judging slow.py\n"
    while not stored(run).in_flight():
        assert process.poll() is None
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 130
    assert f"kernel-smith resume {run} --store r.sqlite" in err
    assert "Traceback" not in err
    assert len(stored(run).in_flight()) == 1


def test_a_run_that_was_only_told_programs_can_be_resumed(
    cli: Cli, quick_runs: None, task: Task, honest_source: str
) -> None:
    run = begin(task, (honest_source, 1.5))
    done = cli("resume", run, "--evaluations", 1, *SAVED)
    assert done.code == 0, done.err
    first, *confirming, last = done.err.splitlines()
    assert first == f"run {run}, from step 1 on"
    assert len(confirming) == 2, "what was told is confirmed, and nothing else is done"
    assert last == "ended: the budget of 1 evaluations is spent"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--candidate", "none.py"), ("none.py: cannot be read", "candidate-format")),
        (
            ("--candidate", "wrong.py", "--parent", "beef"),
            ("--parent beef: none of the run's candidates", "a step's number or a hash"),
        ),
    ],
)
def test_a_program_that_cannot_be_told_leaves_the_run_as_it_was(
    cli: Cli, task: Task, honest_source: str, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    run = begin(task, (honest_source, 1.5))
    cli("tell", run, *arguments, *SAVED).complains(2, *words)
    state = stored(run)
    assert (state.last_step, state.ended) == (0, "for a test")


# ---------------------------------------------------------------- runs that cannot be found

COMMANDS = (("resume",), ("ask",), ("tell", "--candidate", "right.py"))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_run_that_cannot_be_told_apart_or_is_not_there(
    cli: Cli, task: Task, command: tuple[str, ...]
) -> None:
    head, *rest = command
    cli(head, "latest", *rest, *SAVED).complains(2, "r.sqlite: no such file", "optimize TASK")
    Store.open(Path("r.sqlite"), create=True).close()
    cli(head, "latest", *rest, *SAVED).complains(2, "holds no run", "optimize TASK")
    first, second = begin(task), begin(task)
    cli(head, "slow-", *rest, *SAVED).complains(2, first, second, "write more of the id")
    cli(head, "fast-", *rest, *SAVED).complains(2, "no run is called 'fast-'", "runs list")
    Path("r.sqlite").write_bytes(b"something else, and long enough to be looked at" * 100)
    cli(head, "latest", *rest, *SAVED).complains(2, "not a run store", "KERNEL_SMITH_STORE")


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command[0])
def test_a_damaged_event_is_named(
    cli: Cli, task: Task, honest_source: str, command: tuple[str, ...]
) -> None:
    begin(task, (honest_source, 1.5))
    with sqlite3.connect("r.sqlite") as connection:
        connection.execute("UPDATE events SET body = 'torn' WHERE kind = 'step-evaluated'")
    connection.close()
    head, *rest = command
    cli(head, "latest", *rest, *SAVED).complains(2, "event 3 of run slow-", "cannot be read")


# ---------------------------------------------------------------- at a terminal


def busy_panel(task: Task) -> tuple[Panel, RunState]:
    """After every kind of event, with a model's bill, long names and a long history."""
    started = RunStarted(run="slow-1", task=task, config=find_preset("model", "cpp"), at=NOW)
    bill = Usage(prompt_tokens=1_000_000, completion_tokens=11, dollars=0.125, requests=1)
    talk = Conversation(model="m", messages=(), response="", usage=bill)
    summary = "A very long sentence about what was changed. " * 5 + "\nAnd another line."
    events: list[Event] = [started]
    for step in range(100):
        program = Candidate(source=f"class ModelNew:\n    x = {step}\n", name="next.py")
        proposal = Proposal(candidate=program, proposer="model", summary=summary, conversation=talk)
        told = made_up(task, program, 1 + step / 10 if step % 3 else Reason.WRONG_VALUES)
        events.append(
            StepProposed(step=step, label={"island": step % 3}, proposal=proposal, at=NOW)
        )
        events.append(StepEvaluated(step=step, evaluation=told, seconds=1.0, at=NOW))
    best = Candidate(source="class ModelNew:\n    x = 98\n", name="next.py")
    again = made_up(task, best, 10.0)
    events += [
        Remeasured(candidate=best.content_hash, evaluation=again, at=NOW),
        Migrated(candidate=best.content_hash, source=2, target=1, at=NOW),
        StepDropped(step=100, proposer="model", why="no " * 100, conversation=talk, at=NOW),
        RunResumed(at=NOW),
        RunEnded(why="enough", at=NOW),
    ]
    state, panel = RunState.begin(started), Panel(describe)
    for event in events:
        if event is not started:
            state.apply(event)
        panel.see(event, state)
    return panel, state


def shown(panel: Panel, width: int) -> list[str]:
    console = Console(file=io.StringIO(), width=width, force_terminal=True, color_system=None)
    console.print(panel)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().splitlines()


@pytest.mark.parametrize("width", [30, 80, 200])
def test_the_panel_fits_the_terminal_whatever_happened(task: Task, width: int) -> None:
    panel, state = busy_panel(task)
    assert shown(Panel(describe), width), "before the first event"
    lines = shown(panel, width)
    assert max(map(len, lines)) <= width
    assert len(lines) == 15, "each on a line of its own, the latest eight events at the end"
    for line, title in zip(
        lines, ("best", "curve", "now", "left", "steps", "by", "model"), strict=False
    ):
        assert line.startswith(title)
    assert 0 < len(curve(state)) <= 60
    if width == 200:
        assert "proposed 100  compiled 100  correct 66" in lines[4]
        assert "101,001,111 tokens, $12.62" in lines[6]
        assert lines[-1].startswith("ended: enough")
