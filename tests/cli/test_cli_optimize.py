"""`kernel-smith optimize` and `resume`, with the real judge: runs that end, stop, die and go on."""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest
from pydantic import TypeAdapter

from kernel_smith.errors import BadInput, MissingPrerequisite, UserError
from kernel_smith.evaluation import engines
from kernel_smith.proposers import seed
from kernel_smith.records import (
    Event,
    RunConfig,
    RunEnded,
    RunResumed,
    RunStarted,
    StepEvaluated,
)
from kernel_smith.runs import presets
from kernel_smith.runs.run import fold
from kernel_smith.runs.state import RunState
from kernel_smith.search import methods
from kernel_smith.search.base import Ask
from kernel_smith.search.methods import METHODS
from kernel_smith.store import Store
from kernel_smith.testing.openai_server import OpenAIServer, Reply
from kernel_smith.testing.trivial import TrivialEngine

Cli = Callable[..., Any]
Start = Callable[..., "subprocess.Popen[str]"]

RUN = ("optimize", "slow", "--proposer", "mutator", "--proposer", "tuner", "--store", "r.sqlite")
EVENTS: TypeAdapter[Event] = TypeAdapter(Event)


def stored(run: str = "latest") -> RunState:
    with Store.open(Path("r.sqlite")) as store:
        return fold(store, store.find_run(run))


def resume_command(text: str) -> list[str]:
    """The arguments of the resume command that was shown."""
    found = re.search(r"kernel-smith (resume .*)", text)
    assert found, text
    return shlex.split(found[1].partition("  #")[0])


# ---------------------------------------------------------------- runs that end


def test_without_a_gpu_correct_programs_are_collected_on_request(
    cli: Cli, quick_runs: None
) -> None:
    run = ("optimize", "rms_norm_rows", "--backend", "hip", "--proposer", "tuner")
    run = (*run, "--evaluations", 2, "--store", "r.sqlite")
    done = cli(*run)
    assert done.code == 1
    assert "not timed: it takes their GPU (--untimed collects correct ones)" in done.err
    done = cli(*run, "--untimed", "-o", "variants")
    assert done.code == 0, done.out + done.err
    state = stored()
    correct = [step for step in state.steps.values() if step.evaluation and step.evaluation.ok]
    found = {path.read_text() for path in Path("variants").glob("*.py")}
    assert found == {step.proposal.candidate.source for step in correct} and len(found) > 1
    assert "None was timed. They are in variants." in done.out
    assert "--backend hip $(printf -- '--start %s ' variants/*.py)" in done.out
    again = cli("resume", state.run, "--evaluations", 3, "--store", "r.sqlite", "--json")
    assert json.loads(again.out.splitlines()[-1])["correct"] >= len(found)


class Flattering(TrivialEngine):
    """An engine whose short measurings flatter, opened as one on this machine would be."""

    def __init__(self, truth: float) -> None:
        super().__init__(lambda _: 1.88, at_length=lambda _: truth)

    def __enter__(self) -> Flattering:
        return self

    def __exit__(self, *_: object) -> None: ...


@pytest.fixture(params=["made up", pytest.param("judged", marks=pytest.mark.sweep)])
def confirmed_against_both(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Runs that confirm their winner as a user's do, for which a judge has to compile."""
    if request.param == "made up":
        monkeypatch.setattr(engines, "open_engine", lambda *_: Flattering(1.2))
        return
    request.getfixturevalue("quick_runs")
    quick = presets._CONFIRMATION.model_copy(update={"baselines": ("eager", "compile")})
    monkeypatch.setattr(presets, "_CONFIRMATION", quick)


def test_a_run_writes_its_winner_and_a_resumed_one_counts_on(
    cli: Cli, confirmed_against_both: None, slow: Path
) -> None:
    done = cli(*RUN, "--evaluations", 2, "-o", "best.py")
    assert done.code == 0, done.out + done.err
    state = stored()
    assert state.best is not None
    assert Path("best.py").read_text() == state.best.candidate.source
    lines = done.err.splitlines()
    assert lines[0] == f"run {state.run}"
    assert re.match(r"   0  start    +[\d.]+x \[", lines[1])
    assert lines[-1] == "ended: the budget of 2 evaluations is spent"
    assert re.fullmatch(r" +measuring step \d+ once more, at full length, to confirm it", lines[-3])
    shown = r"[\d.]+x the speed of {} \(95%: [\d.]+ to [\d.]+\): faster"
    both = f"{shown.format('eager')}; {shown.format('torch.compile')}"
    assert re.fullmatch(rf" +at full length: step \d+ {both}", lines[-2])
    assert "\x1b" not in done.out + done.err
    assert "ok: correct, " in done.out
    assert "Confirmed: it is faster than eager and torch.compile." in done.out
    assert "next: kernel-smith report" in done.out

    again = cli(*resume_command(done.out)[:-1], 3, "--json", "-o", "best.py")
    assert again.code == 0, again.err
    assert again.err == ""
    *events, result = again.out.splitlines()
    parsed = [EVENTS.validate_json(line) for line in events]
    assert isinstance(parsed[0], RunResumed)
    assert isinstance(parsed[-1], RunEnded)
    steps = [event.step for event in parsed if isinstance(event, StepEvaluated)]
    assert steps and min(steps) >= 2, "what was done is not done again"
    found = stored()
    assert found.best is not None
    assert found.funnel["evaluated"] >= 3
    assert json.loads(result) == {
        "run": state.run,
        "best": "best.py",
        "score": found.best.score,
        "confirmed": True,
        "faster_than": ["eager", "compile"],
        "unconfirmed": "",
    }


@pytest.mark.parametrize(("truth", "code"), [(0.937, 1), (1.2, 0)])
def test_a_run_says_and_exits_with_what_its_winner_shows_when_it_is_measured_once_more(
    cli: Cli, slow: Path, monkeypatch: pytest.MonkeyPatch, truth: float, code: int
) -> None:
    monkeypatch.setattr(engines, "open_engine", lambda *_: Flattering(truth))
    done = cli(*RUN, "--evaluations", 3, "-o", "best.py")
    assert done.code == code, done.out + done.err
    assert f"ok: correct, {truth:.3g}" in done.out, "the figure that chose it is not shown"
    words = (
        "Confirmed: it is faster"
        if truth > 1
        else "That it is faster than eager and torch.compile is"
    )
    assert words in done.out
    winner = stored().best
    assert winner is not None and Path("best.py").read_text() == winner.candidate.source
    name = winner.candidate.content_hash
    (listed,) = cli("runs", "list", "--store", "r.sqlite", "--json").json["runs"]
    assert (listed["best_candidate"], listed["confirmed"]) == (name, truth > 1)
    shown = cli("runs", "show", "latest", "--store", "r.sqlite", "--json").json
    assert (shown["best"]["candidate"], shown["confirmed"]) == (name, truth > 1)
    written = cli("runs", "best", "latest", "--store", "r.sqlite", "-o", "again.py").out
    assert Path("again.py").read_text() == winner.candidate.source
    assert ("not shown to be faster" in written) == (truth < 1)
    prose = cli("runs", "show", "latest", "--store", "r.sqlite").out
    assert prose.count("faster is not shown") == (0 if truth > 1 else 2)
    lineage = cli("runs", "lineage", "latest", "--store", "r.sqlite", "--json").json
    assert lineage["lineage"][-1]["candidate"] == name


class Impatient:
    """A method of another package, which is at a loss after the first program."""

    def __init__(self, config: RunConfig) -> None: ...

    def next(self, state: RunState, free: Sequence[str], rng: Random) -> Ask:
        raise LookupError("what now?")

    def hear(self, event: Event, state: RunState) -> None: ...


def test_a_method_that_fails_is_named_with_the_best_so_far_and_how_to_go_on(
    cli: Cli, slow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "open_engine", lambda *_: Flattering(1.2))
    offered: dict[str, Any] = {"impatient": Impatient}
    monkeypatch.setattr(methods, "offered_methods", lambda: offered)
    monkeypatch.setattr(methods, "load_method", offered.__getitem__)
    done = cli(*RUN, "--method", "impatient", "--start", "right.py", "--evaluations", 3)
    what = f"method impatient failed in next: LookupError: what now? ({__file__}:"
    done.complains(2, what, "every step is kept; correct the method, then go on: kernel-smith")
    assert "The kernel is in slow_best.py." in done.out
    assert Path("slow_best.py").read_text() == Path("right.py").read_text()
    offered["impatient"] = METHODS["greedy"]
    done = cli(*resume_command(done.err))
    assert done.code == 0, done.err
    assert stored().funnel["evaluated"] == 3


def test_json_begins_with_the_run_and_quiet_says_nothing_before_the_result(
    cli: Cli, quick_runs: None, slow: Path
) -> None:
    done = cli(*RUN, "--evaluations", 1, "--json", "--quiet")
    assert isinstance(EVENTS.validate_json(done.out.splitlines()[0]), RunStarted)
    shown = cli("resume", "latest", "--store", "r.sqlite", "--quiet")
    assert shown.err == ""
    assert shown.code == 0
    assert Path("slow_best.py").exists()


def test_a_first_program_that_is_wrong_ends_the_run_with_its_evaluation(
    cli: Cli, quick_runs: None, slow: Path
) -> None:
    done = cli(*RUN, "--start", "wrong.py")
    assert done.code == 1
    assert "wrong.py:\nincorrect: wrong-values: " in done.out
    assert "Advice: " in done.out
    assert f"next: kernel-smith runs show {stored().run} --store r.sqlite" in done.out
    assert "--backend cpp --start FILE  # begin with a kernel of yours" in done.out
    assert "ended: no program to start from was accepted" in done.err
    assert not Path("slow_best.py").exists()
    again = cli("resume", "latest", "--store", "r.sqlite", "--evaluations", 5)
    assert again.code == 1, "there is nothing to go on with"
    assert stored().funnel["evaluated"] == 1


def test_a_run_begins_with_the_compilers_kernel_and_one_without_the_library(
    cli: Cli, slow: Path, honest_source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "open_engine", lambda *_: Flattering(1.2))
    made = seed.Seed(
        task="slow",
        backend="cpp",
        source=honest_source + "LIBRARY = True\n",
        without_library=honest_source + "LIBRARY = False\n",
        workloads=("default",),
        kernels=1,
        torch="2",
    )
    monkeypatch.setattr(seed, "make_seed", lambda *_, **__: made)
    assert cli("optimize", "slow", "--proposer", "seed", "--store", "r.sqlite").code == 0
    assert stored().by_proposer["seed"] == 2
    assert cli("resume", "latest", "--store", "r.sqlite", "--evaluations", 9).code == 0
    assert stored().by_proposer["seed"] == 2, "neither is made again"


@pytest.mark.parametrize("kind", [BadInput, MissingPrerequisite])
def test_with_first_programs_alone_the_run_ends_after_them(
    cli: Cli,
    slow: Path,
    refuse_seeds: Callable[[type[UserError]], None],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[UserError],
) -> None:
    """Also where the compiler finds no memory for its kernel."""
    monkeypatch.setattr(engines, "open_engine", lambda *_: Flattering(1.2))
    refuse_seeds(kind)
    done = cli("optimize", "slow", "--proposer", "seed", "--store", "r.sqlite")
    assert done.code == 0, done.err
    assert "seed     dropped: the compiler's kernel cannot be used" in done.err
    assert "ended: nobody was asked for more than the first programs" in done.err
    again = cli("resume", "latest", "--store", "r.sqlite")
    assert "dropped" not in again.err, "what was refused once is not asked for again"


def test_a_run_that_has_nothing_left_to_try_is_not_to_be_resumed(
    cli: Cli, slow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """These kernels hold no numbers, so the tuner alone finds nothing to change."""
    monkeypatch.setattr(engines, "open_engine", lambda *_: Flattering(1.2))
    run = ("optimize", "slow", "--proposer", "tuner", "--store", "r.sqlite")
    done = cli(*run, "--evaluations", 5)
    assert stored().ended == "no proposer has anything new to try"
    assert "kernel-smith resume" not in done.out
    assert f"next: kernel-smith ask {stored().run} --store r.sqlite  # resuming would" in done.out


def test_a_run_keeps_its_own_copy_of_the_task(
    cli: Cli, slow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "open_engine", lambda *_: Flattering(1.2))
    assert cli(*RUN, "--evaluations", 1).code == 0
    (slow / "slow" / "task.py").write_text("nothing of use")
    done = cli("resume", "latest", "--store", "r.sqlite", "--evaluations", 2)
    assert done.code == 0, done.err
    state = stored()
    assert state.funnel["evaluated"] >= 2
    hashes = {elite.evaluation.task_hash for elite in state.evaluated.values()}
    assert hashes == {state.task.content_hash}


# ---------------------------------------------------------------- models that do not answer


MODEL = ("--proposer", "model", "--model")


def test_a_model_that_cannot_be_reached_is_an_error_before_anything_is_done(
    cli: Cli, slow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    done = cli(*RUN, *MODEL, "nobody,retries=0")
    done.complains(2, "http://127.0.0.1:9/v1: cannot connect", "start the server, or correct")
    assert "... asking each model one question" in done.err
    assert not Path("r.sqlite").exists(), "no run was started"


def test_a_model_that_is_of_no_use_is_an_error_in_the_end_and_others_go_on(
    cli: Cli, slow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "open_engine", lambda *_: Flattering(1.2))
    with OpenAIServer([Reply("I would rather not.")]) as server:
        model = f"m@{server.base_url},price_prompt=1000,price_completion=1000,retries=0"
        # So many that the model has answered before the others have done them all.
        done = cli(*RUN, *MODEL, model, "--evaluations", 20)
        done.complains(3, "no model gave a new program", "gave no usable program", "resume slow-")
        assert re.search(r"\(\d+ requests?, [\d,]+ tokens, \$\d+\.\d\d\)", done.err)
        assert stored().funnel["evaluated"] >= 6
        assert Path("slow_best.py").exists(), "what the others found is there"
    again = cli("resume", "latest", "--store", "r.sqlite", "--evaluations", 25)
    again.complains(2, "cannot connect")
    assert stored().ended is not None, "the run was left as it was"


def test_a_model_that_works_for_a_while_is_no_error(
    cli: Cli, slow: Path, honest_source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "open_engine", lambda *_: Flattering(1.2))
    changed = honest_source.replace("++i", "i += 1")
    replies = [Reply(f"Change: one.\n```python\n{changed}```\n"), Reply("No more.")]
    with OpenAIServer(replies) as server:
        done = cli(*RUN, *MODEL, f"m@{server.base_url}", "--evaluations", 5)
    assert done.code == 0, done.err
    assert "error:" not in done.err


def test_a_model_that_hangs_does_not_keep_others_waiting(
    cli: Cli, slow: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "open_engine", lambda *_: Flattering(1.2))
    with OpenAIServer([Reply("late", latency=50)]) as server:
        model = f"sleeper@{server.base_url},deadline_seconds=45"
        done = cli(*RUN, "--proposer", "model", "--model", model, "--evaluations", 3)
        assert server.requests, "it was asked"
    assert done.code == 0, done.err
    state = stored()
    assert state.funnel["evaluated"] >= 3
    assert state.dropped["model"] == 0, "nobody waited for its deadline"


# ---------------------------------------------------------------- runs that stop


@pytest.fixture
def program(quick_runs: None) -> list[str]:
    """The command line, with runs that are as quick as those in this process."""
    options = presets._OPTIONS.model_dump_json()
    return [
        sys.executable,
        "-c",
        "from kernel_smith.cli.main import main\n"
        "from kernel_smith.runs import presets\n"
        f"options = type(presets._OPTIONS).model_validate_json({options!r})\n"
        "presets._OPTIONS = presets._CONFIRMATION = options\n"
        "main()\n",
    ]


def wait_for(process: subprocess.Popen[str], moment: str) -> None:
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith(moment):
            return
    raise AssertionError(f"{moment!r} never came")


@pytest.mark.parametrize(
    ("moment", "how"),
    [
        pytest.param("run ", signal.SIGINT, marks=pytest.mark.sweep),
        ("   1  ", signal.SIGINT),
        pytest.param("   1  ", signal.SIGTERM, marks=pytest.mark.sweep),
        ("run ", signal.SIGTERM),
        ("   0  ", signal.SIGKILL),
    ],
    ids=["Ctrl-C at the beginning", "Ctrl-C later", "SIGTERM later", "SIGTERM", "kill -9"],
)
def test_a_run_that_was_stopped_goes_on_as_if_nothing_had_been(
    cli: Cli,
    quick_runs: None,
    start_program: Start,
    slow: Path,
    moment: str,
    how: signal.Signals,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (slow / "slow" / "start_cpp.py").unlink()
    temp = slow / "tmp"
    temp.mkdir()
    process = start_program(*RUN, "--start", "right.py", "--evaluations", 40, TMPDIR=temp)
    wait_for(process, moment)
    os.killpg(process.pid, how)
    out, err = process.communicate(timeout=60)
    (slow / "right.py").unlink()
    before = stored()
    if how != signal.SIGKILL:
        assert process.returncode == 130
        assert "Traceback" not in err
        assert "error: interrupted; every step is kept\n" in err
        assert resume_command(err) == ["resume", before.run, "--store", "r.sqlite"]
        assert [path for path in temp.iterdir() if path.is_dir()] == []
        assert ("The kernel is in slow_best.py." in out) == (before.best is not None)
    monkeypatch.setattr(engines, "open_engine", lambda *_: Flattering(1.2))
    limit = before.funnel["evaluated"] + 1
    done = cli("resume", "latest", "--store", "r.sqlite", "--evaluations", limit)
    assert done.code == 0, done.err
    after = stored()
    assert not after.in_flight()
    assert after.steps[0].proposal.candidate.name == "right.py"
    assert before.steps.keys() <= after.steps.keys()
    for number, step in before.steps.items():
        assert after.steps[number].proposal == step.proposal
        assert step.evaluation is None or after.steps[number].evaluation == step.evaluation


# ---------------------------------------------------------------- mistakes


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("nosuch",), ("no task is called 'nosuch'", "tasks list")),
        (("slow", "--preset", "grand"), ("'grand'", "embedded, model, paper")),
        (("slow", "--method", "prayer"), ("'prayer'", "islands, paper, greedy, refinement, uct")),
        (("slow", "--method", "one-shot"), ("none is named", "--model NAME@BASE_URL")),
        (("slow", "--backend", "fortran"), ("no backend is called 'fortran'", "cpp, triton")),
        (("slow", "--proposer", "oracle"), ("'oracle'", "mutator, seed, tuner")),
        (("slow", "--preset", "model"), ("none is named", "--model NAME@BASE_URL")),
        (("slow", "--proposer", "model"), ("none is named", "--models FILE.toml")),
        (("slow", "--model", "qwen@here"), ("not a model: 'qwen@here'", "NAME[@BASE_URL]")),
        (("slow", "--model", "q@http://x/v1,weight=heavy"), ("weight", "known keys")),
        (("slow", "--models", "none.toml"), ("none.toml", "[[models]]")),
        (("slow", "--model", "q@http://x/v1", "--models", "m.toml"), ("together", "in the file")),
        (("slow", "--start", "none.py"), ("none.py: cannot be read", "candidate-format")),
        (("slow", "--backend", "triton", "--proposer", "tuner"), ("no starting", "--start FILE")),
        (("slow", "--target", "-1"), ("-1.0 target", "leave out")),
        (("slow", "--target", "nan"), ("nan target", "leave out")),
        (("slow", "--dollars", "0"), ("0.0 dollars", "leave out")),
        (("slow", "-o", "no/where.py"), ("no/where.py: cannot be written", "-o FILE")),
        (("slow", "-o", f"{'x' * 300}.py"), ("cannot be written (File name too long)", "-o FILE")),
        (("slow", "--store", "x" * 300), ("File name too long", "KERNEL_SMITH_STORE")),
        (("slow", "-o", "slow"), ("slow: cannot be written (Is a directory)", "-o FILE")),
        (("slow", "--untimed", "-o", "wrong.py"), ("wrong.py: cannot be", "-o FOLDER")),
        (("slow", "--store", "/proc/no/r.sqlite"), ("cannot be written", "KERNEL_SMITH_STORE")),
        (("slow", "--store", "wrong.py"), ("not a run store", "KERNEL_SMITH_STORE")),
    ],
)
def test_what_cannot_be_optimized_is_refused_before_anything_begins(
    cli: Cli, slow: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    cli("optimize", *arguments).complains(2, *words)
    assert not Path(".kernel-smith/runs.sqlite").exists()


def test_without_a_compiler_no_run_begins(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nowhere/g++")
    done = cli("optimize", "row_softmax", "--store", "r.sqlite")
    done.complains(3, "$CXX names a compiler that does not exist")
    assert not Path("r.sqlite").exists()


def test_dollars_cannot_be_limited_where_prices_are_unknown(cli: Cli, slow: Path) -> None:
    done = cli(*RUN, "--model", "q@http://127.0.0.1:9/v1", "--proposer", "model", "--dollars", 1)
    done.complains(2, "price of q is not known", "price_prompt")
