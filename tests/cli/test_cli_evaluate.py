"""`kernel-smith evaluate`: the verdict as exit code, text and JSON; mistakes with their remedy."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import time
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kernel_smith.cli import evaluate
from kernel_smith.evaluation import engines, mctracer
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.evaluation.engines.local import Progress
from kernel_smith.evaluation.sandbox.confine import devices
from kernel_smith.evaluation.sandbox.confine.devices import Gpus
from kernel_smith.records import (
    MAX_SOURCE,
    MEANINGS,
    Accuracy,
    BaselineSpeedup,
    BaselineTiming,
    Candidate,
    Device,
    Distribution,
    Environment,
    Evaluation,
    Interval,
    Options,
    Reason,
    Sampling,
    Stage,
    Task,
    Timing,
    TracedKernel,
    WorkloadTiming,
)
from kernel_smith.records.schema_files import schema_texts

Cli = Callable[..., Any]
Start = Callable[..., "subprocess.Popen[str]"]

QUICK = ("--seeds", "1", "--half-width", "10", "--max-seconds", "0.2")


@pytest.fixture
def files(tmp_path: Path, small_task: Task, honest_source: str, wrong_source: str) -> Path:
    """A folder with a task, `relu.py`, and programs for it."""
    (tmp_path / "relu.py").write_text(small_task.source)
    (tmp_path / "right.py").write_text(honest_source)
    (tmp_path / "wrong.py").write_text(wrong_source)
    return tmp_path


def record(done: Any) -> Evaluation:
    """The evaluation on stdout, which satisfies its schema and its record."""
    jsonschema.validate(done.json, json.loads(schema_texts()["evaluation.json"]))
    return Evaluation.model_validate(done.json)


# ---------------------------------------------------------------- verdicts


def test_a_right_candidate_ends_with_zero_and_is_remembered(
    cli: Cli, shared_judge: None, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # How quiet the machine is shall not decide here.
    monkeypatch.setattr(evaluate, "Sampling", partial(Sampling, unstable_above=1e9))
    command = ("evaluate", "relu.py", "right.py", *QUICK)
    first = cli(*command, "--json")
    assert first.code == 0
    assert record(first).ok
    assert "... timing default" in first.err, "progress goes to stderr"
    again = cli(*command, "--json")
    assert again.code == 0
    assert again.json == first.json
    assert again.err == ""
    shown = cli(*command)
    assert shown.out.splitlines()[1].startswith("ok: correct, ")
    assert "--fresh" in shown.out
    assert "Measured on" in shown.out


def test_a_right_candidate_as_a_user_runs_it(run_program: Cli, files: Path) -> None:
    """A program with a judge of its own. A busy machine says that it is, and does not guess."""
    done = run_program(
        *("evaluate", "relu.py", "right.py", "--half-width", "0.04"),
        *("--max-seconds", "0.5", "--json"),
        KERNEL_SMITH_CACHE=files / "own-cache",
    )
    found = record(done)
    assert (found.stage.value, done.code) in [("ok", 0), ("unstable", 5)]
    assert found.timing is not None
    assert "Traceback" not in done.err


def test_the_answer_is_remembered_until_a_fresh_one_is_asked_for(
    cli: Cli, shared_judge: None, files: Path
) -> None:
    command = ("evaluate", "relu.py", "wrong.py", *QUICK, "--json")
    first, again, fresh = cli(*command), cli(*command), cli(*command, "--fresh")
    assert again.json == first.json
    assert "... " in first.err
    assert again.err == ""
    assert record(fresh).created_at > record(first).created_at
    assert record(fresh).reason is record(first).reason
    assert cli(*command).json == fresh.json


def test_a_wrong_candidate_ends_with_one_and_says_why(
    cli: Cli, shared_judge: None, files: Path
) -> None:
    done = cli("evaluate", "relu.py", "wrong.py", *QUICK)
    assert done.code == 1
    assert "relu.py <- wrong.py" in done.out
    assert "incorrect: wrong-values: " in done.out
    assert re.search(r"got \S+, expected \S+ \+- ", done.out)
    assert "Advice: " in done.out
    assert "next: kernel-smith evaluate relu.py wrong.py" in done.out
    assert "Traceback" not in done.err


def test_quiet_leaves_nothing_but_the_result(cli: Cli, shared_judge: None, files: Path) -> None:
    done = cli("evaluate", "relu.py", "wrong.py", *QUICK, "--quiet", "--json")
    assert done.err == ""
    assert record(done).stage.value == "incorrect"


@pytest.mark.parametrize(
    ("old", "new", "verdict", "words"),
    [
        (
            "class ModelNew",
            "class Model",
            "screened-out: no-modelnew",
            "class ModelNew(torch.nn.Module)",
        ),
        (
            "def forward(self, x)",
            "def forward(self, x, y)",
            "load-error: wrong-signature",
            "forward() is called with 1 arguments, but takes (x, y)",
        ),
        (
            "    def forward",
            "    def __init__(self, size):\n        super().__init__()\n\n    def forward",
            "load-error: wrong-signature",
            "ModelNew() is called with 0 arguments, but takes (size)",
        ),
        ("import torch\n", "import torch (\n", "screened-out: syntax-error", "line"),
        ("return y", "return y / 0", "incorrect: non-finite", "got inf"),
        ("return y", "raise ValueError('[/red] \\x1b[31m')", "runtime-error: exception", "[/red]"),
        ("y[i] =", "y[i] ==", "incorrect: ", "Advice"),
        ("extern", "ixtern", "compile-error: compiler-rejected", "candidate.py:"),
    ],
)
def test_other_failures_end_with_one_and_a_verdict(
    cli: Cli,
    shared_judge: None,
    files: Path,
    honest_source: str,
    old: str,
    new: str,
    verdict: str,
    words: str,
) -> None:
    assert old in honest_source
    (files / "candidate.py").write_text(honest_source.replace(old, new, 1))
    done = cli("evaluate", "relu.py", "candidate.py", *QUICK)
    assert done.code == 1, done.err
    assert verdict in done.out
    assert words in done.out
    assert "\x1b" not in done.out
    assert "Traceback" not in done.err
    machine = cli("evaluate", "relu.py", "candidate.py", *QUICK, "--json", "--quiet")
    assert machine.code == 1
    assert not record(machine).ok


def test_the_starting_kernel_is_the_default_candidate(
    cli: Cli, shared_judge: None, files: Path, honest_source: str
) -> None:
    folder = files / "shifted"
    folder.mkdir()
    (files / "relu.py").rename(folder / "task.py")
    cli("evaluate", "shifted", *QUICK).complains(2, "no starting kernel", "name a candidate")
    (folder / "start_cpp.py").write_text(honest_source)
    done = cli("evaluate", "shifted", *QUICK, "--json")
    assert record(done).stage.value in ("ok", "unstable")


# ---------------------------------------------------------------- kernels for a GPU

ENVIRONMENT = Environment(**dict.fromkeys(Environment.model_fields, "x"))
ACCURACY = Accuracy(candidate_error=0.0, reference_error=0.0, allowed_error=1e-5)
GPU = Device(
    name="NVIDIA H200",
    capability="9.0",
    memory_bytes=1,
    multiprocessors=1,
    l2_bytes=1,
    driver="580.1",
    runtime="13.0",
)


@pytest.fixture
def answer(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Options]]:
    """`answer(**fields)`: what every candidate's record says; returns the options asked with."""

    def answer_with(**fields: Any) -> list[Options]:
        asked: list[Options] = []

        def evaluate_any(
            self: LocalEngine, task: Task, candidate: Candidate, options: Options, **rest: Any
        ) -> Evaluation:
            asked.append(options)
            return Evaluation(
                task=task.name,
                task_hash=task.content_hash,
                candidate_hash=candidate.content_hash,
                backend=candidate.backend,
                accuracy=ACCURACY,
                environment=ENVIRONMENT,
                created_at=datetime(2026, 1, 2, tzinfo=UTC),
                **({"stage": Stage.OK} | fields),
            )

        monkeypatch.setattr(LocalEngine, "evaluate", evaluate_any)
        return asked

    return answer_with


def timing() -> Timing:
    one = Interval(value=2.0, low=1.9, high=2.1)
    seconds = Distribution(p50=1e-5, p99=2e-5)
    workload = WorkloadTiming(
        workload="default",
        weight=1.0,
        candidate=seconds,
        baselines=(BaselineTiming(baseline="eager", speedup=one, seconds=seconds),),
        rounds=10,
        calls=10,
    )
    speedups = (BaselineSpeedup(baseline="eager", speedup=one),)
    return Timing(speedups=speedups, workloads=(workload,), cores=(1,))


TRITON = ("evaluate", "relu.py", "right.py", "--backend", "triton")


@pytest.mark.parametrize(
    ("reason", "code"), [(None, 0), (Reason.TOO_NOISY, 5), (Reason.WRONG_VALUES, 1)]
)
def test_what_is_too_noisy_to_say_has_an_exit_code_of_its_own(
    cli: Cli,
    files: Path,
    answer: Callable[..., list[Options]],
    reason: Reason | None,
    code: int,
) -> None:
    stage = Stage.OK if reason is None else MEANINGS[reason].stage
    measured = None if stage is Stage.INCORRECT else timing()
    answer(stage=stage, reason=reason, timing=measured)
    assert cli("evaluate", "relu.py", "right.py", "--fresh").code == code


def test_the_gpu_that_was_measured_on_is_named(
    cli: Cli, files: Path, answer: Callable[..., list[Options]]
) -> None:
    asked = answer(timing=timing(), device=GPU)
    done = cli(*TRITON, "--baseline", "max-autotune", "--baseline", "graph")
    assert done.code == 0
    assert "Measured on NVIDIA H200 (driver 580.1, CUDA 13.0), x (x), x, torch x, x." in done.out
    assert "next: kernel-smith evaluate relu.py right.py --backend triton" in done.out
    (options,) = asked
    assert options.baselines == ("max-autotune", "graph")
    assert options.interpret is False


@pytest.mark.parametrize(
    ("names", "following"),
    [
        ((), f"kernel-smith {' '.join(TRITON)} --compile-only"),
        (("NVIDIA H200",), f"kernel-smith {' '.join(TRITON)}  # how fast is it on the GPU?"),
    ],
)
def test_after_interpreting_comes_the_gpu_or_the_compiler_for_one(
    cli: Cli,
    files: Path,
    answer: Callable[..., list[Options]],
    monkeypatch: pytest.MonkeyPatch,
    names: tuple[str, ...],
    following: str,
) -> None:
    monkeypatch.setattr(devices, "gpus", lambda: Gpus(names=names, driver=None))
    asked = answer(interpreted=True)
    done = cli(*TRITON, "--interpret")
    assert done.code == 0
    assert f"next: {following}" in done.out
    assert [options.interpret for options in asked] == [True]
    unasked = cli(*TRITON, "--fresh")
    assert "--compile-only" in unasked.out, "a GPU that was not used is of no use"


# ---------------------------------------------------------------- mistakes


def unreadable(path: Path) -> None:
    """Not even root can read through a loop of links."""
    path.symlink_to(path)


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda path: None, "No such file"),
        (lambda path: path.mkdir(), "Is a directory"),
        (lambda path: path.write_bytes(b"x = '\xff\xfe'\n"), "not UTF-8"),
        (unreadable, "cannot be read"),
        (lambda path: path.write_text("#" * (MAX_SOURCE + 1)), "characters"),
    ],
    ids=["missing", "directory", "not UTF-8", "unreadable", "too large"],
)
def test_a_candidate_that_cannot_be_read(
    cli: Cli, files: Path, prepare: Callable[[Path], object], words: str
) -> None:
    prepare(files / "mine.py")
    done = cli("evaluate", "relu.py", "mine.py")
    done.complains(2, "mine.py", words, "expected a Python file with class ModelNew")
    assert "docs/candidate-format.md" in done.err


@pytest.mark.parametrize(
    ("prepare", "words"),
    [
        (lambda path: None, ("no such file", "check the path")),
        (lambda path: path.mkdir(), ("holds no `task.py`", "name the task file")),
        (lambda path: path.write_bytes(b"\n\nx = '\xff'\n"), (":3: ", "UTF-8")),
        (lambda path: path.write_text("def broken(:\n"), (":1: ", "syntax")),
        (lambda path: path.write_text("import torch\n"), ("no `class Model`", "define")),
        (
            lambda path: path.write_text("class Model:\n    def forward(self): pass\n"),
            ("no function `get_inputs`", "define `def get_inputs()`"),
        ),
    ],
    ids=["missing", "directory", "not UTF-8", "broken syntax", "no Model", "no get_inputs"],
)
def test_a_task_that_cannot_be_read(
    cli: Cli, files: Path, prepare: Callable[[Path], object], words: tuple[str, ...]
) -> None:
    prepare(files / "other.py")
    cli("evaluate", "other.py", "right.py").complains(2, "other.py", *words)
    cli("tasks", "check", "other.py").complains(2, "other.py", *words)


def test_a_candidate_with_a_byte_order_mark_is_read(
    cli: Cli, shared_judge: None, files: Path, wrong_source: str
) -> None:
    (files / "marked.py").write_bytes(b"\xef\xbb\xbf" + wrong_source.encode())
    done = cli("evaluate", "relu.py", "marked.py", *QUICK, "--json")
    assert record(done).stage.value == "incorrect"


def test_a_task_that_raises_names_the_line(cli: Cli, shared_judge: None, files: Path) -> None:
    text = (files / "relu.py").read_text()
    (files / "raising.py").write_text(text.replace("return [torch.randn(32, 64)]", "return 1 / 0"))
    line = 1 + (files / "raising.py").read_text().splitlines().index("    return 1 / 0")
    for command in (("evaluate", "raising.py", "right.py"), ("tasks", "check", "raising.py")):
        cli(*command, "--quiet").complains(
            2, f"raising.py:{line}: get_inputs raised ZeroDivisionError", "tasks check"
        )


def test_a_task_that_cannot_discriminate_is_refused_with_the_remedy(
    cli: Cli, shared_judge: None, files: Path
) -> None:
    text = (files / "relu.py").read_text()
    (files / "dead.py").write_text(text.replace("torch.relu(x) + 1", "torch.relu(x - 100)"))
    command = ("evaluate", "dead.py", "wrong.py", *QUICK, "--quiet")
    refused = cli(*command)
    refused.complains(2, "dead.py", "zero-output", "--admit zero-output")
    flags = re.findall(r"--admit [a-z-]+", refused.err)
    agreed = cli(*command, *" ".join(flags).split())
    assert agreed.code == 1
    assert "wrong-values" in agreed.out


def test_an_unknown_finding_cannot_be_admitted(cli: Cli, files: Path) -> None:
    done = cli("evaluate", "relu.py", "right.py", "--admit", "everything")
    assert done.code == 2
    assert "everything" in done.err
    assert "Traceback" not in done.err


@pytest.mark.parametrize("cores", ["", "one", "1-2", "1,,2", "-1", "1000"])
def test_bad_cores(cli: Cli, shared_judge: None, files: Path, cores: str) -> None:
    done = cli("evaluate", "relu.py", "right.py", "--cores", cores, "--quiet")
    done.complains(2, "cores")


def test_bad_baseline(cli: Cli, files: Path) -> None:
    done = cli("evaluate", "relu.py", "right.py", "--baseline", "onnx")
    done.complains(2, "'onnx'", "choose from eager, compile, max-autotune, graph")


def test_a_graph_as_baseline_needs_a_gpu(cli: Cli, shared_judge: None, files: Path) -> None:
    done = cli("evaluate", "relu.py", "right.py", "--baseline", "graph", "--quiet")
    done.complains(2, "graph", "GPU", "choose eager or compile")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ((), ("--interpret is for kernels for a GPU", "name another --backend")),
        (("--backend", "triton", "--compile-only"), ("--compile-only", "leave one of them out")),
    ],
)
def test_interpreting_is_for_kernels_that_are_to_run(
    cli: Cli, files: Path, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    cli("evaluate", "relu.py", "right.py", "--interpret", *arguments).complains(2, *words)


@pytest.mark.parametrize("option", ["--ncu", "--mctracer"])
def test_a_profiler_needs_the_gpu_that_the_kernel_ran_on(
    cli: Cli, files: Path, answer: Callable[..., list[Options]], option: str
) -> None:
    command = ("evaluate", "relu.py", "right.py", option, "--quiet", "--fresh")
    elsewhere = cli(*command, "--engine", "http://127.0.0.1:9")
    elsewhere.complains(2, "the GPU is elsewhere", f"leave out {option}")
    answer(interpreted=True)
    cli(*command).complains(2, f"{option} without a GPU", "leave it out")


def test_what_mctracer_sees_is_in_the_record(
    cli: Cli,
    files: Path,
    answer: Callable[..., list[Options]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def trace(task: Task, candidate: Candidate, workload: str) -> tuple[TracedKernel, ...]:
        return (TracedKernel(name=f"kernel_of_{workload}", launches=2, share=1.0),)

    monkeypatch.setattr(mctracer, "trace_candidate", trace)
    answer(timing=timing(), device=GPU)
    command = ("evaluate", "relu.py", "right.py", "--mctracer", "--quiet", "--fresh")
    (seen,) = record(cli(*command, "--json")).traced
    assert (seen.name, seen.launches) == ("kernel_of_default", 2)
    assert "kernel_of_default: 2 launches" in cli(*command).out


def test_without_mctracer_the_remedy_is_named(
    cli: Cli,
    files: Path,
    answer: Callable[..., list[Options]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MACA_PATH", str(files / "nothing"))
    monkeypatch.setenv("PATH", str(files / "nothing"))
    answer(timing=timing(), device=GPU)
    command = ("evaluate", "relu.py", "right.py", "--backend", "maca", "--mctracer", "--quiet")
    done = cli(*command, "--fresh")
    done.complains(3, "mcTracer is not installed", "leave out --mctracer")


def test_a_service_that_does_not_answer_is_named(cli: Cli, files: Path) -> None:
    done = cli("evaluate", "relu.py", "right.py", "--quiet", "--engine", "http://127.0.0.1:9")
    done.complains(3, "does not answer", "kernel-smith serve")


def test_bad_backend(cli: Cli, shared_judge: None, files: Path) -> None:
    done = cli("evaluate", "relu.py", "right.py", "--backend", "fortran", "--quiet")
    done.complains(2, "'fortran'", "cpp")


@pytest.mark.parametrize("option", ["--seeds=0", "--target=0", "--max-seconds=-1", "--target=nan"])
def test_numbers_out_of_range(cli: Cli, files: Path, option: str) -> None:
    done = cli("evaluate", "relu.py", "right.py", option)
    assert done.code == 2
    assert option.split("=")[0] in done.err
    assert "Traceback" not in done.err


def test_a_missing_compiler_ends_with_three_and_names_the_remedy(
    cli: Cli, files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "/nonexistent/c++")
    with LocalEngine() as judging:

        class Asking(LocalEngine):
            """Asks the same judge each time, and leaves it alone when closed."""

            def _ask(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
                return judging._ask(request, progress)

        monkeypatch.setattr(engines, "LocalEngine", Asking)
        done = cli("evaluate", "relu.py", "right.py", *QUICK)
        done.complains(3, "/nonexistent/c++", "unset CXX", "apt-get install g++")
        # What needs none gets its verdict all the same.
        (files / "plain.py").write_text("import torch\nclass ModelNew(torch.nn.Module): ...\n")
        done = cli("evaluate", "relu.py", "plain.py", *QUICK)
        assert done.code == 1
        assert "no-kernel-source" in done.out


# ---------------------------------------------------------------- interruption


def family(pid: int) -> set[int]:
    """A process and its descendants, those alone that live."""
    parents = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (entry / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state != "Z":
            parents[int(entry.name)] = int(parent)
    found = {pid} & parents.keys()
    while more := {child for child, parent in parents.items() if parent in found} - found:
        found |= more
    return found


def test_control_c_leaves_nothing_behind(start_program: Start, files: Path) -> None:
    """While a candidate is timed. (`test_cli_optimize.py` interrupts a judge that is starting.)"""
    temp = files / "temp"
    temp.mkdir()
    process = start_program(
        *("evaluate", "relu.py", "right.py", "--half-width", "1e-4", "--max-seconds", "60"),
        TMPDIR=temp,
        KERNEL_SMITH_CACHE=files / "own-cache",
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("... timing default"):
            break
    everyone = family(process.pid)
    assert len(everyone) >= 3, "the command, its judge and its zygote"
    os.killpg(process.pid, signal.SIGINT)
    _, rest = process.communicate(timeout=120)
    assert process.returncode == 130
    assert "error: interrupted" in rest
    assert "hint: run the same command again" in rest
    assert "Traceback" not in rest
    deadline = time.monotonic() + 60
    while any(map(family, everyone)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(map(family, everyone))
    assert [path for path in temp.iterdir() if path.is_dir()] == []
