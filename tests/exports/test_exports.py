"""Runs for other programs: the table of steps, the trace over time, and experiment trackers."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path

import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.cli.runs_export import write_run
from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.exports.steps import COLUMNS, step_rows
from kernel_smith.exports.story import story_of
from kernel_smith.exports.trace import make_trace
from kernel_smith.exports.trackers import send
from kernel_smith.records import (
    Candidate,
    Conversation,
    Event,
    Proposal,
    Reason,
    Remeasured,
    RunEnded,
    RunStarted,
    StepDropped,
    StepEvaluated,
    StepProposed,
    Task,
    Usage,
)
from kernel_smith.runs.presets import find_preset

BEGIN = datetime(2026, 1, 2, tzinfo=UTC)
TASK = Task(name="slow", source="class Model: ...", family="reduction")
BILL = Usage(prompt_tokens=100, completion_tokens=20, dollars=0.5, seconds=3.0, requests=1)
TALK = Conversation(model="large", messages=(), response="", usage=BILL)


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def program(number: int) -> Candidate:
    return Candidate(source=f"class ModelNew:\n    x = {number}\n", name="next.py")


def proposed(step: int, seconds: float, parent: int | None = None, model: bool = False) -> Event:
    proposal = Proposal(
        candidate=program(step),
        proposer="model" if model else "mutator",
        parents=() if parent is None else (program(parent).content_hash,),
        summary=f"change {step}",
        conversation=TALK if model else None,
    )
    return StepProposed(step=step, label={"island": 1}, proposal=proposal, at=at(seconds))


def evaluated(step: int, seconds: float, outcome: float | Reason, took: float = 2.0) -> Event:
    shown = made_up(TASK, program(step), outcome)
    return StepEvaluated(step=step, evaluation=shown, seconds=took, at=at(seconds))


def a_run() -> list[Event]:
    """A start, a model's gain that shrinks when it is measured again, a failure, a drop."""
    config = find_preset("embedded", "cpp")
    again = made_up(TASK, program(1), 2.0)
    return [
        RunStarted(run="slow-1", task=TASK, config=config, at=at(0)),
        proposed(0, 1),
        evaluated(0, 3, 1.0),
        proposed(1, 7, parent=0, model=True),
        proposed(2, 7.5, parent=0),
        evaluated(1, 9, 3.0),
        evaluated(2, 9.5, Reason.WRONG_VALUES),
        Remeasured(candidate=program(1).content_hash, evaluation=again, seconds=2, at=at(12)),
        StepDropped(step=3, proposer="model", why="known", conversation=TALK, at=at(15)),
        RunEnded(why="enough", at=at(16)),
    ]


def test_every_step_is_a_row_with_its_last_measuring(tmp_path: Path) -> None:
    rows = step_rows(a_run())
    assert [row["step"] for row in rows] == [0, 1, 2, 3]
    assert [row["stage"] for row in rows] == ["ok", "ok", "incorrect", "dropped"]
    assert (rows[1]["first_speedup"], rows[1]["speedup"]) == (3.0, 2.0)
    assert (rows[1]["parent_step"], rows[1]["measured_again"]) == (0, 1)
    assert rows[2]["reason"] == "wrong-values" and rows[2]["speedup"] is None
    assert (rows[3]["dollars"], rows[3]["summary"]) == (0.5, "known")
    assert write_run(a_run(), tmp_path / "steps.parquet") == 4
    table = pyarrow.parquet.read_table(tmp_path / "steps.parquet")
    assert table.column_names == list(COLUMNS)
    assert table.to_pylist() == rows
    assert [path.name for path in tmp_path.iterdir()] == ["steps.parquet"]


def test_a_trace_shows_evaluations_and_requests_over_time(tmp_path: Path) -> None:
    assert write_run(a_run(), tmp_path / "run.trace.json") == 4
    entries = json.loads((tmp_path / "run.trace.json").read_text())["traceEvents"]
    spans = {entry["name"]: entry for entry in entries if entry["ph"] == "X"}
    assert spans["step 1"]["ts"] == 7_000_000 and spans["step 1"]["dur"] == 2_000_000
    assert spans["step 2"]["tid"] != spans["step 1"]["tid"], "side by side"
    assert spans["step 1 again"]["ts"] == 10_000_000
    assert spans["step 2"]["args"]["verdict"]
    requests = [entry for entry in entries if entry["ph"] == "X" and entry["name"] == "large"]
    assert [entry["args"]["outcome"] for entry in requests] == ["step 1", "dropped: known"]
    assert requests[0]["ts"] == 4_000_000, "from when it was asked"
    moments = [entry["name"] for entry in entries if entry["ph"] == "i"]
    assert moments == ["run slow-1", "ended: enough"]
    bests = [entry["args"] for entry in entries if entry["ph"] == "C"]
    assert len(bests) == 2, "what was only seen once does not lead"


@given(st.lists(st.tuples(st.floats(0, 100), st.floats(0, 50)), max_size=30))
def test_nothing_overlaps_on_a_lane(times: list[tuple[float, float]]) -> None:
    events: list[Event] = [a_run()[0]]
    for step, (end, took) in enumerate(times):
        events += [proposed(step, end), evaluated(step, end, 1.0, took)]
    lanes: dict[int, list[tuple[int, int]]] = {}
    for entry in make_trace(events)["traceEvents"]:
        if entry["ph"] == "X":
            span = (entry["ts"], entry["ts"] + entry["dur"])
            lanes.setdefault(entry["tid"], []).append(span)
    assert sum(map(len, lanes.values())) == len(times)
    for spans in lanes.values():
        spans.sort()
        assert all(one[1] <= two[0] for one, two in pairwise(spans))


def test_a_story_has_settings_figures_and_the_winner() -> None:
    story = story_of(a_run())
    assert (story.settings["task"], story.settings["backend"]) == ("slow", "cpp")
    assert [number for number, _ in story.steps] == [0, 1, 2, 3]
    bests = [figures["best_speedup_low"] for _, figures in story.steps]
    assert bests == sorted(bests) and story.steps[2][1]["correct"] == 0
    assert story.outcome["tokens"] == 240 and story.outcome["dollars"] == 1.0
    assert story.kernel == program(1).source


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_mlflow_gets_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import mlflow

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    assert "of experiment kernel-smith" in send(story_of(a_run()), "mlflow")
    (run,) = mlflow.search_runs(experiment_names=["kernel-smith"], output_format="list")
    assert run.info.run_name == "slow-1"
    assert run.data.params["task"] == "slow"
    assert run.data.metrics["final.dollars"] == 1.0
    history = mlflow.MlflowClient().get_metric_history(run.info.run_id, "speedup")
    assert [(each.step, each.value) for each in history] == [(0, 1.0), (1, 2.0)]
    assert mlflow.artifacts.load_text(f"{run.info.artifact_uri}/best_kernel.py") == (
        program(1).source
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_weights_and_biases_gets_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wandb

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_SILENT", "true")
    for name in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR", "WANDB_CONFIG_DIR"):
        monkeypatch.setenv(name, str(tmp_path / name))
    assert "of project kernel-smith" in send(story_of(a_run()), "wandb")
    wandb.teardown()  # as at the end of a program: until then the file may be incomplete
    (folder,) = (tmp_path / "wandb").glob("offline-run-*")
    (log,) = folder.glob("*.wandb")
    written = log.read_bytes()
    for words in (b"slow-1", b"final.best_speedup_low", b"best-kernel"):
        assert words in written


def test_an_unknown_tracker_is_refused() -> None:
    with pytest.raises(BadInput, match="'notebook'") as caught:
        send(story_of(a_run()), "notebook")
    assert "mlflow or wandb" in caught.value.hint
