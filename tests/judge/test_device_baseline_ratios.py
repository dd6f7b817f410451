"""Baselines against eager PyTorch: kept, and used to compare candidates with them."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import kernel_smith
from kernel_smith.evaluation.judge.timing.baseline_ratios import (
    BaselineRatio,
    BaselineRatios,
    Ratio,
    against_graph,
    ratio_of_contest,
    through_eager,
)
from kernel_smith.evaluation.judge.timing.host_clock import Measurement, Samples
from kernel_smith.evaluation.judge.timing.outcome import Against
from kernel_smith.evaluation.judge.timing.statistics import LogRatio
from kernel_smith.records import Device, Distribution, Task, Workload

DEVICE = Device(
    name="A device",
    capability="9.0",
    memory_bytes=1 << 37,
    multiprocessors=132,
    l2_bytes=50 << 20,
    driver="570.1",
    runtime="12.8",
)
SMALL, LARGE = Workload(name="small", params={"n": 2}), Workload(name="large", params={"n": 9})
SECONDS = Distribution(p50=2e-5, p99=3e-5)
KNOWN = BaselineRatio(
    ratio=Ratio(mean=0.1 + 0.2, error=1e-17, freedom=30.5),
    plain=Ratio(mean=-1 / 3, error=0.02, freedom=7),
    seconds=SECONDS,
)

finite = st.floats(-20, 20)
errors = st.floats(0, 5)
freedoms = st.floats(1, 1000)
log_ratios = st.builds(LogRatio, finite, errors, freedoms)


@pytest.fixture
def kept(small_task: Task, tmp_path: Path) -> BaselineRatios:
    return BaselineRatios(small_task, DEVICE, tmp_path)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def measurement(**seconds: list[float]) -> Measurement:
    samples = {name: Samples(seconds=values) for name, values in seconds.items()}
    return Measurement(samples, rounds=len(next(iter(seconds.values()))), calls=1)


# ---------------------------------------------------------------- keeping


def test_what_was_put_comes_back_to_the_last_bit(kept: BaselineRatios) -> None:
    kept.put(SMALL, "compile", KNOWN)
    assert kept.get(SMALL, "compile") == KNOWN


def test_another_judge_finds_it_and_nothing_but_it_is_left(
    kept: BaselineRatios, small_task: Task, tmp_path: Path
) -> None:
    kept.put(SMALL, "compile", KNOWN)
    assert BaselineRatios(small_task, DEVICE, tmp_path).get(SMALL, "compile") == KNOWN
    assert len(files_in(tmp_path)) == 1


def test_the_latest_stays(kept: BaselineRatios) -> None:
    kept.put(SMALL, "compile", KNOWN)
    later = KNOWN.model_copy(update={"plain": None})
    kept.put(SMALL, "compile", later)
    assert kept.get(SMALL, "compile") == later


def test_nothing_is_known_of_others(
    kept: BaselineRatios, small_task: Task, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept.put(SMALL, "compile", KNOWN)
    assert kept.get(LARGE, "compile") is None
    assert kept.get(SMALL, "graph") is None
    other_task = small_task.model_copy(update={"source": small_task.source + "\n"})
    assert BaselineRatios(other_task, DEVICE, tmp_path).get(SMALL, "compile") is None
    other_driver = DEVICE.model_copy(update={"driver": "580.1"})
    assert BaselineRatios(small_task, other_driver, tmp_path).get(SMALL, "compile") is None
    monkeypatch.setattr(kernel_smith, "__version__", "another")
    assert BaselineRatios(small_task, DEVICE, tmp_path).get(SMALL, "compile") is None


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"[]", b"\xff\xfe", b'{"ratio": null}', KNOWN.model_dump_json().encode()[:-9]],
    ids=repr,
)
def test_a_spoilt_file_is_as_good_as_none_and_is_replaced(
    kept: BaselineRatios, tmp_path: Path, content: bytes
) -> None:
    kept.put(SMALL, "compile", KNOWN)
    (path,) = files_in(tmp_path)
    path.write_bytes(content)
    assert kept.get(SMALL, "compile") is None
    kept.put(SMALL, "compile", KNOWN)
    assert kept.get(SMALL, "compile") == KNOWN


def test_a_cache_that_cannot_be_written_costs_no_answer(small_task: Task, tmp_path: Path) -> None:
    (tmp_path / "baselines").write_text("a file where the folder should be")
    kept = BaselineRatios(small_task, DEVICE, tmp_path)
    kept.put(SMALL, "compile", KNOWN)
    assert kept.get(SMALL, "compile") is None


def test_what_is_kept_can_be_read_by_others(kept: BaselineRatios, tmp_path: Path) -> None:
    kept.put(SMALL, "compile", KNOWN)
    (path,) = files_in(tmp_path)
    assert json.loads(path.read_text())["seconds"] == {"p50": 2e-5, "p99": 3e-5}


# ---------------------------------------------------------------- comparing


def test_a_standing_is_the_time_of_eager_over_the_baselines_own() -> None:
    replayed = measurement(eager=[4.0] * 5, compile=[2.0] * 5)
    plain = measurement(eager=[9.0] * 5, compile=[3.0] * 5)
    found = ratio_of_contest("compile", replayed, plain)
    assert math.exp(found.ratio.mean) == pytest.approx(2)
    assert found.plain is not None
    assert math.exp(found.plain.mean) == pytest.approx(3)
    assert found.seconds == Distribution(p50=2.0, p99=2.0)
    assert ratio_of_contest("compile", replayed, None).plain is None


@given(direct=log_ratios, known=log_ratios)
def test_the_way_through_eager_divides_and_adds_the_uncertainties(
    direct: LogRatio, known: LogRatio
) -> None:
    """candidate/baseline = candidate/eager over baseline/eager, in logarithms."""
    against = Against(direct, Distribution(p50=1, p99=1))
    found = through_eager(
        against, BaselineRatio(ratio=Ratio.of(known), plain=None, seconds=SECONDS)
    )
    assert found.ratio.mean == pytest.approx(direct.mean - known.mean)
    assert found.ratio.error**2 == pytest.approx(direct.error**2 + known.error**2)
    assert found.ratio.freedom == min(direct.freedom, known.freedom)
    assert found.seconds == SECONDS
    assert found.plain is None


@pytest.mark.parametrize("mine", [LogRatio(1.0, 0.03, 5), None])
@pytest.mark.parametrize("theirs", [Ratio(mean=0.25, error=0.04, freedom=9), None])
def test_plain_calls_are_compared_where_both_have_them(
    mine: LogRatio | None, theirs: Ratio | None
) -> None:
    direct = Against(LogRatio(0, 0, 5), SECONDS, mine)
    found = through_eager(direct, KNOWN.model_copy(update={"plain": theirs}))
    if mine is None or theirs is None:
        assert found.plain is None
    else:
        assert found.plain == LogRatio(0.75, pytest.approx(0.05), 5)


def test_a_baseline_as_fast_as_eager_changes_nothing_but_the_seconds() -> None:
    direct = Against(LogRatio(0.7, 0.01, 20), Distribution(p50=1, p99=1))
    same = BaselineRatio(ratio=Ratio(mean=0, error=0, freedom=100), plain=None, seconds=SECONDS)
    assert through_eager(direct, same) == Against(direct.ratio, SECONDS)


def test_against_the_graph_plain_calls_are_held_against_the_replay_of_eager() -> None:
    direct = Against(LogRatio(0.7, 0.01, 20), SECONDS, LogRatio(5.0, 0.1, 3))
    replayed = measurement(eager=[6.0, 6.0, 6.0, 6.0], candidate=[1.0, 1.0, 1.0, 1.0])
    plain = measurement(candidate=[2.0, 2.0, 2.0], eager=[30.0, 30.0, 30.0])
    found = against_graph(direct, replayed, plain)
    assert (found.ratio, found.seconds) == (direct.ratio, direct.seconds)
    assert found.plain is not None
    assert math.exp(found.plain.mean) == pytest.approx(3)


# ---------------------------------------------------------------- telling


def test_what_is_known_on_all_workloads_is_told_as_their_mean_by_weight(
    small_task: Task, tmp_path: Path
) -> None:
    heavy = LARGE.model_copy(update={"weight": 3.0})
    task = small_task.model_copy(update={"workloads": (SMALL, heavy)})
    kept = BaselineRatios(task, "A processor, 2 timed", tmp_path)
    for workload, ratio in ((SMALL, 1.0), (heavy, 16.0)):
        assert kept.known(["compile", "max-autotune"]) == ()
        kept.put(workload, "compile", KNOWN.model_copy(update={"ratio": certain(ratio)}))
    (known,) = kept.known(["compile", "max-autotune"])
    assert known.baseline == "compile" and known.ratio == pytest.approx(8.0)
    assert BaselineRatios(task, "A processor, 1 timed", tmp_path).known(["compile"]) == ()
    assert BaselineRatios(task, DEVICE, tmp_path).known(["compile"]) == ()


def certain(ratio: float) -> Ratio:
    return Ratio(mean=math.log(ratio), error=0.0, freedom=9)
