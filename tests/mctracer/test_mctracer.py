"""mcTracer's trace, and how the tool is started: with a stand-in that writes such a trace."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.evaluation.mctracer import find_mctracer, trace_candidate
from kernel_smith.evaluation.mctracer import profile as profile_module
from kernel_smith.evaluation.mctracer.trace import read_trace
from kernel_smith.evaluation.watching import run as run_module
from kernel_smith.evaluation.watching import run_tool, target
from kernel_smith.records import Candidate, Task, TracedKernel, Workload
from kernel_smith.records.device_prose import render_traced

TASK = Task(
    name="t", source="", workloads=(Workload(name="small", params={}), Workload(name="large"))
)
CANDIDATE = Candidate(backend="maca", source="class ModelNew: ...")
MARK = "at::cuda::(anonymous namespace)::spin_kernel(long)"


def kernel(name: str, start: float, duration: float, **more: Any) -> dict[str, Any]:
    return {"ph": "X", "cat": "kernel", "name": name, "ts": start, "dur": duration} | more


def trace(*events: Any) -> str:
    return json.dumps({"traceEvents": events})


WARM_UP = kernel("softmax_kernel", 100, 900)
BEGIN = kernel(MARK, 2000, 1)
CALL = (
    kernel("scale_kernel", 2600, 10),
    kernel("softmax_kernel", 2100, 60),
    kernel("scale_kernel", 2700, 30),
)
SEEN = (
    TracedKernel(name="softmax_kernel", launches=1, share=0.6),
    TracedKernel(name="scale_kernel", launches=2, share=0.4),
)


def test_only_kernels_after_the_mark_count() -> None:
    assert read_trace(trace(WARM_UP, BEGIN, *CALL)) == SEEN


def test_events_are_ordered_by_their_time_and_not_by_their_place() -> None:
    assert read_trace(trace(*CALL, WARM_UP, BEGIN)) == SEEN


def test_the_last_of_several_marks_is_where_the_call_begins() -> None:
    earlier = (kernel(MARK, 50, 1), kernel("other_kernel", 60, 5))
    assert read_trace(trace(BEGIN, *earlier, *CALL)) == SEEN


def test_what_is_no_kernel_does_not_count() -> None:
    others = (
        kernel("mcLaunchKernel", 2200, 500, cat="runtime"),
        kernel("softmax_kernel", 2300, 500, ph="B"),
        {"ph": "X", "cat": "kernel", "name": "no_times"},
        kernel("negative", 2400, -5),
        {"ph": "M", "name": "process_name", "args": {"name": "python"}},
        "a word",
    )
    assert read_trace(trace(BEGIN, *others, *CALL)) == SEEN


def test_a_call_of_the_runtime_is_no_mark() -> None:
    with pytest.raises(MissingPrerequisite, match="where the call begins"):
        read_trace(trace(BEGIN | {"cat": "runtime"}, *CALL))


def test_an_event_may_have_its_name_among_its_arguments() -> None:
    named = kernel("kernel", 2100, 3, cat="gpu_op", args={"name": "softmax_kernel"})
    mark = kernel("kernel", 2000, 1, cat="gpu_op", args={"name": MARK})
    unnamed = kernel("other_kernel", 2200, 1, args={"grid": [1, 1, 1]})
    shares = {seen.name: seen.share for seen in read_trace(trace(mark, named, unnamed))}
    assert shares == {"softmax_kernel": 0.75, "other_kernel": 0.25}


def test_kernels_that_took_no_time_have_no_share() -> None:
    (seen,) = read_trace(trace(BEGIN, kernel("empty_kernel", 2100, 0)))
    assert seen == TracedKernel(name="empty_kernel", launches=1, share=0.0)


def test_a_trace_without_the_mark_is_refused() -> None:
    with pytest.raises(MissingPrerequisite, match="where the call begins") as caught:
        read_trace(trace(WARM_UP, *CALL))
    assert caught.value.hint == "leave out --mctracer"


def test_a_call_without_kernels_is_named() -> None:
    with pytest.raises(MissingPrerequisite, match="no kernel of the candidate"):
        read_trace(trace(WARM_UP, BEGIN))


def test_a_trace_that_lacks_its_end_is_mended() -> None:
    whole = trace(WARM_UP, BEGIN, *CALL)
    assert read_trace(whole.removesuffix("]}") + "\n") == SEEN


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Expecting value"),
        ("no trace", "Expecting value"),
        (trace(BEGIN, *CALL)[:-20], "Expecting|Unterminated"),
        ("[]", "no list of traceEvents"),
        ('{"traceEvents": 3}', "no list of traceEvents"),
    ],
)
def test_garbage_is_refused_with_the_problem(text: str, problem: str) -> None:
    with pytest.raises(MissingPrerequisite, match=f"cannot be read: .*({problem})"):
        read_trace(text)


def test_the_prose_has_shares_names_and_launches() -> None:
    assert render_traced(()) == ""
    assert render_traced(SEEN).splitlines() == [
        "mcTracer, one call:",
        "   60.0%  softmax_kernel: 1 launch",
        "   40.0%  scale_kernel: 2 launches",
    ]
    many = render_traced(SEEN * 10).splitlines()
    assert many[-1] == "  and 8 more"


@pytest.fixture
def stand_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A program in the place of mcTracer that notes what it was asked, and writes a trace.

    As the tool does, it takes the folder for its output from the current one.
    """
    tool = tmp_path / "bin" / "mcTracer"
    tool.parent.mkdir()
    tool.write_text(
        f"#!{sys.executable}\n"
        "import json, os, sys\nfrom pathlib import Path\n"
        f"notes = Path({str(tmp_path)!r})\n"
        "mctx, odname, output, name, label, *program = sys.argv[1:]\n"
        "if (mctx, odname, name) != ('--mctx', '--odname', '--name'):\n"
        "    sys.exit('usage: mcTracer --mctx --odname FOLDER --name LABEL PROGRAM')\n"
        "folder = Path(program[-2])\n"
        "seen = {'program': program, 'task': (folder / 'task.json').read_text(),\n"
        "        'candidate': (folder / 'candidate.json').read_text()}\n"
        "(notes / 'seen.json').write_text(json.dumps(seen))\n"
        "for answer in notes.glob('answer*'):\n"
        "    place = Path(f'{Path.cwd()}/{output}')\n"
        "    place.mkdir(exist_ok=True)\n"
        "    suffix = answer.name.removeprefix('answer')\n"
        "    (place / f'tracer_out-{os.getpid()}{suffix}.json').write_text(answer.read_text())\n"
        "print('mcTracer says hello')\n"
        "sys.exit(int((notes / 'code').read_text()))\n"
    )
    tool.chmod(0o755)
    (tmp_path / "code").write_text("0")
    (tmp_path / "answer").write_text(trace(WARM_UP, BEGIN, *CALL))
    monkeypatch.setenv("MACA_PATH", str(tmp_path))
    return tmp_path


def test_the_tool_watches_the_program_and_its_trace_is_read(stand_in: Path) -> None:
    assert trace_candidate(TASK, CANDIDATE, "large") == SEEN
    seen = json.loads((stand_in / "seen.json").read_text())
    *program, tool, folder, workload = seen["program"]
    assert program == [sys.executable, "-m", "kernel_smith.evaluation.watching.target"]
    assert (tool, workload) == ("mctracer", "large")
    assert tool in target.WATCHED
    assert Task.model_validate_json(seen["task"]) == TASK
    assert Candidate.model_validate_json(seen["candidate"]) == CANDIDATE
    assert not Path(folder).exists(), "the folder is gone"


def test_traces_of_programs_that_the_candidate_starts_are_left_out(stand_in: Path) -> None:
    (stand_in / "answer1").write_text(trace())
    (stand_in / "answer9").write_text(trace(kernel("mcc", 1, 1)))
    assert trace_candidate(TASK, CANDIDATE) == SEEN


def test_a_tool_that_fails_is_quoted(stand_in: Path) -> None:
    (stand_in / "code").write_text("9")
    with pytest.raises(MissingPrerequisite, match="mcTracer failed: mcTracer says hello"):
        trace_candidate(TASK, CANDIDATE)


def test_a_tool_that_writes_nothing_is_quoted(stand_in: Path) -> None:
    (stand_in / "answer").unlink()
    with pytest.raises(MissingPrerequisite, match="wrote no trace: mcTracer says hello"):
        trace_candidate(TASK, CANDIDATE)


def test_an_unknown_workload_names_those_that_there_are(stand_in: Path) -> None:
    with pytest.raises(BadInput, match="no workload is called 'huge'") as caught:
        trace_candidate(TASK, CANDIDATE, "huge")
    assert "small, large" in caught.value.hint


def test_the_tool_of_the_sdk_comes_before_the_one_on_the_path(
    stand_in: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = tmp_path / "elsewhere" / "mcTracer"
    other.parent.mkdir()
    other.write_text("#!/bin/sh\n")
    other.chmod(0o755)
    monkeypatch.setenv("PATH", str(other.parent))
    assert find_mctracer() == stand_in / "bin" / "mcTracer"
    monkeypatch.setenv("MACA_PATH", str(tmp_path / "nothing"))
    assert find_mctracer() == other


def test_without_the_tool_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_module, "find_mctracer", lambda: None)
    with pytest.raises(MissingPrerequisite, match="not installed") as caught:
        trace_candidate(TASK, CANDIDATE)
    assert "MACA_PATH" in caught.value.hint


def test_a_tool_that_takes_too_long_is_ended_with_what_it_watches(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run_module, "_SECONDS", 2.0)
    command = ("/bin/sh", "-c", "sleep 600 & echo $! > watched; wait")
    with pytest.raises(MissingPrerequisite, match="Slow was not done") as caught:
        run_tool(command, name="Slow", option="--slow", folder=tmp_path)
    assert caught.value.hint == "leave out --slow"
    watched = int((tmp_path / "watched").read_text())
    while _runs(watched):  # until whoever inherited it takes notice; a test has a time limit
        time.sleep(0.05)


def _runs(process: int) -> bool:
    try:
        state = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0]
    except (FileNotFoundError, ProcessLookupError):  # the second while it is read
        return False
    return state != "Z"


@pytest.mark.parametrize(
    ("tool", "order"),
    [("mctracer", ["_sleep", "synchronize", "call"]), ("ncu", ["start", "call", "stop"])],
)
def test_each_tool_learns_in_its_way_where_the_call_begins(
    monkeypatch: pytest.MonkeyPatch, tool: str, order: list[str]
) -> None:
    seen: list[str] = []
    for place, name in (
        (torch.cuda, "_sleep"),
        (torch.cuda, "synchronize"),
        (torch.cuda.profiler, "start"),
        (torch.cuda.profiler, "stop"),
    ):
        monkeypatch.setattr(place, name, lambda *_, name=name: seen.append(name), raising=False)
    with target.WATCHED[tool]():
        seen.append("call")
    assert seen == order
