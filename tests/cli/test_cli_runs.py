"""`kernel-smith runs`."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.records import (
    Accuracy,
    BaselineSpeedup,
    BaselineTiming,
    Beside,
    Budget,
    Candidate,
    Conversation,
    Distribution,
    Environment,
    Evaluation,
    Interval,
    Message,
    Proposal,
    Reason,
    Remeasured,
    RunConfig,
    RunEnded,
    RunStarted,
    Stage,
    StepDropped,
    StepEvaluated,
    StepProposed,
    Task,
    Timing,
    Usage,
    WorkloadTiming,
)
from kernel_smith.store import Store

Cli = Callable[..., Any]

AT = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
TASK = Task(name="row_softmax", source="class Model: ...")
CONFIG = RunConfig(backend="cpp", proposers={"tuner": 1, "model": 3}, budget=Budget(evaluations=9))
RUN = "row_softmax-1"
ENVIRONMENT = Environment(
    machine="m", processor="p", kernel="k", python="3", torch="2", compiler="c", kernel_smith="0"
)
TALK = Conversation(
    model="a-model",
    messages=(Message(role="user", content="faster!"),),
    response="done",
    usage=Usage(prompt_tokens=1200, completion_tokens=34, dollars=0.5, requests=1),
)


def program(step: int) -> Candidate:
    return Candidate(source=f"class ModelNew:\n    unroll = {step}\n")


def timing(value: float) -> Timing:
    speedup = Interval(value=value, low=value - 0.1, high=value + 0.1)
    each = Distribution(p50=1e-5, p99=1e-5)
    baselines = (BaselineTiming(baseline="eager", speedup=speedup, seconds=each),)
    workload = WorkloadTiming(
        workload="wide", weight=1, candidate=each, baselines=baselines, rounds=9, calls=90
    )
    overall = (BaselineSpeedup(baseline="eager", speedup=speedup),)
    return Timing(speedups=overall, workloads=(workload,), cores=(1,))


def evaluation(step: int, speedup: float | None) -> Evaluation:
    return Evaluation(
        task=TASK.name,
        task_hash=TASK.content_hash,
        candidate_hash=program(step).content_hash,
        backend="cpp",
        stage=Stage.OK if speedup else Stage.INCORRECT,
        reason=None if speedup else Reason.WRONG_VALUES,
        accuracy=Accuracy(candidate_error=0, reference_error=0, allowed_error=1e-5),
        timing=timing(speedup) if speedup else None,
        environment=ENVIRONMENT,
        created_at=AT,
    )


def add_step(store: Store, step: int, parent: int | None, speedup: float | None) -> None:
    proposal = Proposal(
        candidate=program(step),
        proposer="start" if parent is None else "model",
        parents=() if parent is None else (program(parent).content_hash,),
        summary=f"unroll {step} times",
        conversation=None if parent is None else TALK,
    )
    store.append(RUN, StepProposed(step=step, proposal=proposal, at=AT))
    made = evaluation(step, speedup)
    store.append(RUN, StepEvaluated(step=step, evaluation=made, seconds=1, at=AT))
    if parent is not None and speedup is not None:
        again = Remeasured(candidate=program(step).content_hash, evaluation=made, at=AT)
        store.append(RUN, again)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A run that ended: 0 -> 1 -> 3 got better, 2 was wrong, 4 dropped, 5 never finished."""
    monkeypatch.delenv("KERNEL_SMITH_STORE", raising=False)
    path = tmp_path / ".kernel-smith" / "runs.sqlite"
    with Store.open(path, create=True) as store:
        store.append(RUN, RunStarted(run=RUN, task=TASK, config=CONFIG, at=AT))
        add_step(store, 0, None, 1.0)
        add_step(store, 1, 0, 1.5)
        add_step(store, 2, 0, None)
        add_step(store, 3, 1, 3.0)
        store.append(RUN, StepDropped(step=4, proposer="model", why="known", at=AT))
        flying = Proposal(candidate=program(5), proposer="tuner")
        store.append(RUN, StepProposed(step=5, label={"island": 1}, proposal=flying, at=AT))
        store.append(RUN, RunEnded(why="9 evaluations were made", at=AT))
    return path


@pytest.fixture
def empty_run(store: Path) -> str:
    """A second run, without any step, that nobody writes to."""
    with Store.open(store) as opened:
        opened.append("bare", RunStarted(run="bare", task=TASK, config=CONFIG, at=AT))
    return "bare"


@pytest.mark.usefixtures("empty_run")
def test_list_shows_every_run_and_offers_to_resume(cli: Cli) -> None:
    done = cli("runs", "list")
    assert done.code == 0
    rows = {line.split()[0]: line for line in done.out.splitlines()}
    assert all(word in rows[RUN] for word in ("ended", "3.00x", "cpp"))
    assert "interrupted" in rows["bare"]
    assert "next: kernel-smith resume bare" in done.out
    listed = cli("runs", "list", "--json").json["runs"]
    assert [run["id"] for run in listed] == ["bare", RUN]
    assert listed[1]["evaluations"] == 4
    assert listed[1]["best"]["value"] == 3.0


def test_list_of_an_empty_store_says_how_to_start(cli: Cli, tmp_path: Path) -> None:
    path = tmp_path / "none.sqlite"
    Store.open(path, create=True).close()
    done = cli("runs", "list", "--store", path)
    assert done.code == 0
    assert "next: kernel-smith optimize TASK" in done.out
    assert cli("runs", "list", "--store", path, "--json").json == {"runs": []}


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize("name", [RUN, "row", "latest"])
def test_show_tells_the_story_of_a_run(cli: Cli, name: str) -> None:
    done = cli("runs", "show", name)
    assert done.code == 0
    for expected in (
        f"{RUN}: ended",
        "budget: evaluations 9",
        "model 3",
        "9 evaluations were made",
        "5 proposed -> 4 compiled -> 3 correct -> 3 honest -> 2 faster",
        "1 in flight, 1 dropped",
        "3.00x [2.90, 3.10] at step 3, proposed by model: unroll 3 times",
        "up to 2.90x (95% lower bound)",
        "model: 3 steps (60%), 2 timed, 2 new bests",
        "3,600 prompt tokens",
        "$1.50",
        f"next: kernel-smith runs best {RUN}",
    ):
        assert expected in done.out


@pytest.mark.usefixtures("store")
def test_show_as_json_has_the_same_facts(cli: Cli) -> None:
    shown = cli("runs", "show", RUN, "--json").json
    assert shown["state"] == "ended"
    assert shown["funnel"]["faster"] == 2
    assert shown["best"]["step"] == 3
    assert shown["best"]["candidate"] == program(3).content_hash
    assert shown["curve"] == [0.9, 1.4, 1.4, 2.9], "what is certain of the best"
    assert shown["usage"]["dollars"] == 1.5
    assert RunConfig.model_validate(shown["config"]) == CONFIG


def test_show_of_a_run_without_steps(cli: Cli, empty_run: str) -> None:
    done = cli("runs", "show", empty_run)
    assert done.code == 0
    assert "none yet" in done.out and "not asked" in done.out
    assert "next: kernel-smith resume bare" in done.out
    assert cli("runs", "show", empty_run, "--json").json["best"] is None


def test_show_of_a_run_that_never_began_says_why(cli: Cli, empty_run: str, store: Path) -> None:
    with Store.open(store) as opened:
        opened.append("bare", StepDropped(step=0, proposer="seed", why="no seed: it draws", at=AT))
    assert "dropped    seed: no seed: it draws" in cli("runs", "show", empty_run).out
    assert "no seed" not in cli("runs", "show", RUN).out


@pytest.mark.usefixtures("store")
def test_best_writes_the_winning_kernel(cli: Cli, tmp_path: Path) -> None:
    done = cli("runs", "best", "latest", "-o", "won.py")
    assert done.code == 0
    assert (tmp_path / "won.py").read_text() == program(3).source
    assert "next: kernel-smith evaluate row_softmax won.py --backend cpp" in done.out
    written = cli("runs", "best", "latest", "--json").json
    assert written["path"] == "row_softmax_best.py"
    assert written["speedup"]["value"] == 3.0
    assert (tmp_path / written["path"]).read_text() == program(3).source


@pytest.mark.usefixtures("store")
def test_best_complains_where_it_cannot_write(cli: Cli, tmp_path: Path) -> None:
    cli("runs", "best", RUN, "-o", "no/such/folder.py").complains(2, "no/such/folder.py", "-o FILE")
    for odd in (".", "", "x" * 300):
        cli("runs", "best", RUN, "-o", odd).complains(2, "cannot be written", "-o FILE")
    assert sorted(path.name for path in tmp_path.iterdir()) == [".kernel-smith"]


@pytest.mark.parametrize("command", ["best", "diff", "lineage"])
def test_commands_about_the_best_complain_where_there_is_none(
    cli: Cli, empty_run: str, command: str
) -> None:
    cli("runs", command, empty_run).complains(2, "no correct and timed candidate", "runs show bare")


@pytest.mark.usefixtures("store")
def test_diff_compares_the_best_with_its_parent(cli: Cli) -> None:
    done = cli("runs", "diff", RUN)
    assert done.code == 0
    lines = done.out.splitlines()
    assert "--- step 1 (1.50x [1.40, 1.60])" in lines
    assert "-    unroll = 1" in lines
    assert "+    unroll = 3" in lines
    assert f"next: kernel-smith runs lineage {RUN} 3" in done.out


@pytest.mark.usefixtures("store")
def test_diff_takes_steps_and_hashes(cli: Cli) -> None:
    shown = cli("runs", "diff", RUN, "0", program(2).content_hash[:12], "--json").json
    assert (shown["a"]["step"], shown["b"]["step"]) == (0, 2)
    assert shown["b"]["reason"] == "wrong-values"
    assert "+    unroll = 2" in shown["diff"]
    of_one = cli("runs", "diff", RUN, "2", "--json").json
    assert (of_one["a"]["step"], of_one["b"]["step"]) == (0, 2)
    assert "the same program" in cli("runs", "diff", RUN, "3", "3").out


@pytest.mark.usefixtures("store")
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("show", "nothing"), ("'nothing'", "runs list")),
        (("diff", RUN, "77", "0"), ("'77'", "steps go up to 5")),
        (("diff", RUN, "0"), ("no parent", "A B")),
        (("lineage", RUN, "xyz"), ("'xyz'", "beginning of a hash")),
        (("lineage", RUN, ""), ("starts the hashes of 5", "write more")),
        (("export", RUN, "-o", "no/folder.jsonl"), ("no/folder.jsonl",)),
    ],
)
def test_bad_arguments_are_explained(cli: Cli, arguments: tuple[str, ...], words: Any) -> None:
    cli("runs", *arguments).complains(2, *words)


@pytest.mark.parametrize(
    ("arguments", "following"),
    [
        (("show", "nothing"), "runs list"),
        (("diff", RUN, "77", "0"), f"runs lineage {RUN}"),
        (("diff", RUN, "0"), f"runs diff {RUN} A B"),
    ],
)
def test_what_to_do_next_is_about_the_store_that_was_named(
    cli: Cli, store: Path, arguments: tuple[str, ...], following: str
) -> None:
    other = store.rename("other.sqlite")
    done = cli("runs", *arguments, "--store", other)
    done.complains(2, f"kernel-smith {following} --store other.sqlite\n")


def test_a_missing_store_is_explained(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KERNEL_SMITH_STORE", raising=False)
    cli("runs", "list").complains(2, ".kernel-smith/runs.sqlite", "kernel-smith optimize")
    cli("runs", "list", "--store", "x" * 300).complains(2, "no such file, expected a run store")


@pytest.mark.usefixtures("empty_run")
def test_an_ambiguous_beginning_is_explained(cli: Cli) -> None:
    cli("runs", "show", "").complains(2, f"bare, {RUN}", "write more")


@pytest.mark.usefixtures("store")
def test_lineage_shows_what_each_step_gained(cli: Cli) -> None:
    done = cli("runs", "lineage", RUN)
    assert done.code == 0
    steps = [line.split()[0] for line in done.out.splitlines()[1:4]]
    assert steps == ["0", "1", "3"]
    assert "+50.0%" in done.out and "+100.0%" in done.out
    assert f"next: kernel-smith runs diff {RUN} 1 3" in done.out
    rows = cli("runs", "lineage", RUN, "2", "--json").json["lineage"]
    assert [(row["step"], row["gain"]) for row in rows] == [(0, None), (2, None)]


def test_lineage_trusts_what_was_timed_side_by_side(cli: Cli, store: Path) -> None:
    """Figures of different moments differ by more than the gain."""
    gain = Interval(value=1.09, low=1.02, high=1.17)
    beside = Beside(candidate_hash=program(1).content_hash, gain=gain)
    judged = evaluation(3, 3.0).model_copy(update={"beside": beside})
    with Store.open(store) as book:
        book.append(RUN, Remeasured(candidate=judged.candidate_hash, evaluation=judged, at=AT))
    out = cli("runs", "lineage", RUN).out
    assert "+9.0% [+2.0%, +17.0%]" in out and "+100.0%" not in out and "+50.0%" in out
    rows = cli("runs", "lineage", RUN, "--json").json["lineage"]
    assert [row["gain"] for row in rows] == [None, 1.5, 1.09]
    assert rows[1]["side_by_side"] is None and rows[2]["side_by_side"]["low"] == 1.02


@pytest.mark.usefixtures("store")
def test_export_writes_every_step_as_json(cli: Cli, tmp_path: Path) -> None:
    done = cli("runs", "export", RUN, "-o", "steps.jsonl")
    assert done.code == 0
    assert "6 steps" in done.out
    assert f"next: kernel-smith runs show {RUN}" in done.out
    lines = [json.loads(line) for line in (tmp_path / "steps.jsonl").read_text().splitlines()]
    assert [line["event"] for line in lines].count("remeasured") == 2
    lines = [line for line in lines if line["event"] != "remeasured"]
    assert [line["event"] for line in lines] == ["run", *["step"] * 6, "done"]
    assert lines[-1]["steps"] == 6
    steps = {line["step"]: line for line in lines[1:-1]}
    assert Evaluation.model_validate(steps[3]["evaluation"]) == evaluation(3, 3.0)
    proposal = Proposal.model_validate(steps[3]["proposal"])
    assert (proposal.candidate, proposal.conversation) == (program(3), TALK)
    assert steps[4]["dropped"]["why"] == "known"
    assert steps[5]["proposal"] is not None
    assert steps[5]["evaluation"] is None
    assert cli("runs", "export", RUN, "-o", "x.jsonl", "--json").json["steps"] == 6


@pytest.mark.usefixtures("store")
def test_export_writes_what_the_files_name_asks_for(cli: Cli, tmp_path: Path) -> None:
    assert "6 steps" in cli("runs", "export", RUN, "-o", "steps.parquet").out
    assert (tmp_path / "steps.parquet").read_bytes()[:4] == b"PAR1"
    assert cli("runs", "export", RUN, "-o", "run.trace.json").code == 0
    assert json.loads((tmp_path / "run.trace.json").read_text())["traceEvents"]
    assert cli("runs", "export", RUN, "-o", "steps.csv").code == 0
    with (tmp_path / "steps.csv").open(newline="") as file:
        rows = {row["step"]: row for row in csv.DictReader(file)}
    assert len(rows) == 6 and rows["3"]["source"] == program(3).source
    cli("runs", "export", RUN, "-o", "steps.xls").complains(2, "steps.xls", "-o steps.jsonl")
    assert not (tmp_path / "steps.xls").exists()
    cli("runs", "export", RUN).complains(2, "either a file or a tracker", "-o FILE")
    cli("runs", "export", RUN, "--to", "paper").complains(2, "'paper'", "mlflow or wandb")
