"""Nsight Compute's table, and how the tool is started: with a stand-in that prints such a table."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.evaluation.nsight import profile as profile_module
from kernel_smith.evaluation.nsight import profile_candidate
from kernel_smith.evaluation.nsight.counters import METRICS, read_counters
from kernel_smith.records import Candidate, NsightKernel, Task, Workload
from kernel_smith.records.device_prose import render_nsight

TASK = Task(
    name="t", source="", workloads=(Workload(name="small", params={}), Workload(name="large"))
)
CANDIDATE = Candidate(backend="triton", source="class ModelNew: ...")
WAITING = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"


def table(*kernels: dict[str, str], unit: str = "nsecond") -> str:
    """As `ncu --csv --page raw` prints it: names, units, then a row per launch."""
    names = ["ID", "Kernel Name", *METRICS]
    units = [unit if name == METRICS[0] else "" for name in names]
    rows = [names, units, *([k.get(name, "") for name in names] for k in kernels)]
    return "\n".join(",".join(f'"{cell}"' for cell in row) for row in rows)


ROW = {
    "ID": "0",
    "Kernel Name": "softmax_kernel",
    "gpu__time_duration.sum": "12,340",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "71.5",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "20.25",
    "dram__bytes_read.sum": "4194304",
    "dram__bytes_write.sum": "2097152",
    WAITING.format("long_scoreboard"): "8.5",
    WAITING.format("barrier"): "1.5",
    "lts__t_sector_hit_rate.pct": "n/a",
}


def test_a_row_is_a_launch_with_its_counters() -> None:
    (kernel,) = read_counters(table(ROW))
    assert kernel == NsightKernel(
        name="softmax_kernel",
        seconds=12.34e-6,
        memory_share=0.715,
        compute_share=0.2025,
        bytes_read=4194304,
        bytes_written=2097152,
        waits_for="loads from memory",
    )


def test_what_the_program_prints_around_the_table_does_not_matter() -> None:
    text = f"==PROF== Connected\nhello, world\n{table(ROW, ROW)}\n==PROF== Disconnected\n"
    assert len(read_counters(text)) == 2


@pytest.mark.parametrize(("unit", "seconds"), [("usecond", 12.34e-3), ("ns", 12.34e-6)])
def test_units_are_those_of_the_table(unit: str, seconds: float) -> None:
    (kernel,) = read_counters(table(ROW, unit=unit))
    assert kernel.seconds == pytest.approx(seconds)


def test_no_table_means_no_kernel_was_seen() -> None:
    with pytest.raises(MissingPrerequisite, match="saw no kernel"):
        read_counters("==WARNING== No kernels were profiled.\n")


def test_the_prose_says_what_is_known_and_no_more() -> None:
    assert render_nsight(()) == ""
    text = render_nsight(read_counters(table(ROW)))
    assert "softmax_kernel: 12.3 us: memory 72%, multiprocessors 20%" in text
    assert "4.0 MiB read, 2.0 MiB written, waits most for loads from memory" in text
    assert "warps" not in text


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of ncu that notes its arguments and prints what a file says."""
    tool = tmp_path / "ncu"
    tool.write_text(
        f"#!{sys.executable}\n"
        "import json, sys\nfrom pathlib import Path\n"
        f"folder = Path({str(tmp_path)!r})\n"
        "target = Path(sys.argv[-2])\n"
        "seen = {'arguments': sys.argv[1:], 'task': (target / 'task.json').read_text(),\n"
        "        'candidate': (target / 'candidate.json').read_text()}\n"
        "(folder / 'seen.json').write_text(json.dumps(seen))\n"
        "print((folder / 'answer').read_text())\n"
        "sys.exit(int((folder / 'code').read_text()))\n"
    )
    tool.chmod(0o755)
    (tmp_path / "code").write_text("0")
    (tmp_path / "answer").write_text(table(ROW))
    monkeypatch.setattr(profile_module, "find_ncu", lambda: tool)
    return tmp_path


def test_the_tool_is_asked_for_one_call_and_leaves_clocks_alone(stand_in: Path) -> None:
    (kernel,) = profile_candidate(TASK, CANDIDATE, "large")
    assert kernel.name == "softmax_kernel"
    seen = json.loads((stand_in / "seen.json").read_text())
    arguments = " ".join(seen["arguments"])
    assert "--clock-control none" in arguments and "--profile-from-start off" in arguments
    assert arguments.endswith("large")
    assert all(metric in arguments for metric in METRICS)
    assert Task.model_validate_json(seen["task"]) == TASK
    assert Candidate.model_validate_json(seen["candidate"]) == CANDIDATE
    assert not Path(seen["arguments"][-2]).exists(), "the folder is gone"


def test_counters_that_are_forbidden_are_explained(stand_in: Path) -> None:
    (stand_in / "answer").write_text("==ERROR== ERR_NVGPUCTRPERM - no permission")
    (stand_in / "code").write_text("1")
    with pytest.raises(MissingPrerequisite, match="may not read") as caught:
        profile_candidate(TASK, CANDIDATE)
    assert "NVreg_RestrictProfilingToAdminUsers" in caught.value.hint


def test_a_tool_that_fails_is_quoted(stand_in: Path) -> None:
    (stand_in / "answer").write_text("==ERROR== out of paper")
    (stand_in / "code").write_text("9")
    with pytest.raises(MissingPrerequisite, match="out of paper"):
        profile_candidate(TASK, CANDIDATE)


def test_an_unknown_workload_names_those_that_there_are(stand_in: Path) -> None:
    with pytest.raises(BadInput, match="no workload is called 'huge'") as caught:
        profile_candidate(TASK, CANDIDATE, "huge")
    assert "small, large" in caught.value.hint


def test_without_the_tool_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_module, "find_ncu", lambda: None)
    with pytest.raises(MissingPrerequisite, match="not installed"):
        profile_candidate(TASK, CANDIDATE)
