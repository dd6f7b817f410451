"""The engine on this machine: verdicts, its cache, and what it survives."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel_smith.errors import BadInput, InternalError, MissingPrerequisite
from kernel_smith.evaluation.engines import EvaluationCache, LocalEngine
from kernel_smith.records import Admission, Candidate, Evaluation, Options, Reason, Stage, Task

WriteTask = Callable[..., Task]


def family(pid: int) -> set[int]:
    """A process and its living descendants."""
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


def wait_until(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 120
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    return condition()


def living(pids: set[int]) -> set[int]:
    return {pid for pid in pids if family(pid)}


@pytest.fixture
def own_temp(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A place for temporary folders that nobody else uses."""
    folder = tmp_path / "temp"
    folder.mkdir()
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    return folder


def folders(parent: Path) -> list[str]:
    return [path.name for path in parent.iterdir() if path.is_dir()]


# ---------------------------------------------------------------- verdicts


def test_an_honest_candidate_is_ok(
    engine: LocalEngine, small_task: Task, quick: Options, honest_source: str
) -> None:
    candidate = Candidate(source=honest_source)
    steps: list[str] = []
    evaluation = engine.evaluate(small_task, candidate, quick, progress=steps.append)
    assert evaluation.stage is Stage.OK
    assert evaluation.task_hash == small_task.content_hash
    assert evaluation.candidate_hash == candidate.content_hash
    assert evaluation.accuracy is not None
    assert evaluation.accuracy.candidate_error is not None
    assert evaluation.accuracy.candidate_error <= evaluation.accuracy.allowed_error
    assert evaluation.timing is not None
    assert [w.workload for w in evaluation.timing.workloads] == ["default"]
    assert evaluation.timing.speedup.low <= evaluation.timing.speedup.high
    read_and_written = 2 * 32 * 64 * 4
    assert [(w.bytes, w.flops) for w in evaluation.work] == [(read_and_written, 0)]
    assert {"screen", "compile", "load", "correctness", "timing"} <= set(evaluation.seconds)
    assert "checking default" in steps


@pytest.mark.parametrize(
    ("old", "new", "stage", "reason"),
    [
        (": 0) + 1", ": 0)", Stage.INCORRECT, Reason.WRONG_VALUES),
        (": 0) + 1", ": 0) + 0.0f / 0.0f", Stage.INCORRECT, Reason.NON_FINITE),
        ("return y", "return y.double()", Stage.INCORRECT, Reason.OUTPUT_DTYPE),
        ("return y", "return (y,)", Stage.INCORRECT, Reason.OUTPUT_STRUCTURE),
        ("return y", "return y.to_sparse()", Stage.INCORRECT, Reason.OUTPUT_TYPE),
        ("y[i] = (x[i]", "y[i] == (x[i]", Stage.INCORRECT, None),
        ("y[i] = (x[i]", "y[i] = (z[i]", Stage.COMPILE_ERROR, Reason.COMPILER_REJECTED),
        ("def forward(self, x)", "def forward(self)", Stage.LOAD_ERROR, Reason.WRONG_SIGNATURE),
        ("import torch\n", "import torch, socket\n", Stage.SCREENED_OUT, Reason.FORBIDDEN_IMPORT),
        ("return y", "raise ValueError('\\ud800')", Stage.RUNTIME_ERROR, Reason.EXCEPTION),
    ],
)
def test_a_bad_candidate_is_data(
    engine: LocalEngine,
    small_task: Task,
    quick: Options,
    honest_source: str,
    old: str,
    new: str,
    stage: Stage,
    reason: Reason | None,
) -> None:
    assert old in honest_source
    source = honest_source.replace(old, new, 1)
    evaluation = engine.evaluate(small_task, Candidate(source=source), quick)
    assert evaluation.stage is stage, evaluation.message
    assert reason is None or evaluation.reason is reason
    assert Evaluation.model_validate_json(evaluation.model_dump_json()) == evaluation
    json.dumps(evaluation.model_dump(mode="json"), allow_nan=False)


def test_a_candidate_that_calls_its_kernels_when_imported_is_judged_with_a_note(
    engine: LocalEngine, small_task: Task, quick: Options, honest_source: str
) -> None:
    """Replaced by no-ops they fail right there: the test of whether they matter tells nothing."""
    check = """
assert ModelNew()(torch.full((4,), 2.0)).tolist() != [0.0] * 4, "the kernel does not work"
"""
    source = honest_source.replace("torch.empty_like(x)", "torch.zeros_like(x)") + check
    evaluation = engine.evaluate(small_task, Candidate(source=source), quick)
    assert evaluation.stage is Stage.OK, f"{evaluation.message} {evaluation.log}"
    assert any("whether they matter" in note for note in evaluation.notes)


def test_compiler_messages_have_the_lines_of_the_candidate_file(
    engine: LocalEngine, small_task: Task, quick: Options, honest_source: str
) -> None:
    source = honest_source.replace("y[i] = (x[i]", "y[i] = (z[i]", 1)
    line = next(n for n, text in enumerate(source.splitlines(), 1) if "z[i]" in text)
    candidate = Candidate(source=source, name="mine.py")
    evaluation = engine.evaluate(small_task, candidate, quick)
    assert evaluation.message.startswith(f"mine.py:{line}: ")
    assert any(d.line == line and d.severity == "error" for d in evaluation.diagnostics)


def test_timed_cores_are_those_that_were_asked_for(
    engine: LocalEngine, small_task: Task, quick: Options, honest_source: str
) -> None:
    cores = sorted(os.sched_getaffinity(0))
    candidate = Candidate(source=honest_source)
    for chosen in ((cores[-1],), (cores[0],), None):
        options = quick.model_copy(update={"cores": chosen})
        evaluation = engine.evaluate(small_task, candidate, options)
        assert evaluation.timing is not None
        expected = chosen or tuple(cores[1:] or cores)
        assert evaluation.timing.cores == expected


# ---------------------------------------------------------------- bad input


def test_a_core_that_does_not_exist_is_bad_input(
    engine: LocalEngine, small_task: Task, quick: Options, honest_source: str
) -> None:
    options = quick.model_copy(update={"cores": (1_000,)})
    with pytest.raises(BadInput, match="1000") as caught:
        engine.evaluate(small_task, Candidate(source=honest_source), options)
    assert "choose among" in caught.value.hint


def test_an_unknown_backend_is_bad_input(
    engine: LocalEngine, small_task: Task, quick: Options
) -> None:
    with pytest.raises(BadInput, match="fortran") as caught:
        engine.evaluate(small_task, Candidate(source="", backend="fortran"), quick)
    assert "cpp" in caught.value.hint


def test_a_finding_is_admitted_for_those_alone_who_agree(
    engine: LocalEngine, write_task: WriteTask, quick: Options, honest_source: str
) -> None:
    task = write_task("""
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x).add_(1)

def get_inputs():
    return [torch.arange(64.0)]
""")
    candidate = Candidate(source=honest_source)
    findings = (Admission.SEED_INDEPENDENT, Admission.ACCEPTS_MEAN)
    agreeing = quick.model_copy(update={"admit": findings})
    assert engine.evaluate(task, candidate, agreeing).stage is Stage.OK
    with pytest.raises(BadInput, match="seed-independent"):
        engine.evaluate(task, candidate, quick)


def test_examining_lists_workloads_and_findings(
    engine: LocalEngine, write_task: WriteTask, small_task: Task
) -> None:
    assert engine.examine(small_task) == []
    dead = write_task("""
import torch

TASK = {"workloads": {"fine": {"shift": 0}, "dead": {"shift": -100}}}

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs(shift):
    return [torch.randn(64) + shift]
""")
    found = engine.examine(dead)
    assert ("dead", Admission.ZERO_OUTPUT) in found
    assert {workload for workload, _ in found} == {"dead"}


# ---------------------------------------------------------------- the cache


class NoJudge(LocalEngine):
    """An engine that would have to ask, and must not."""

    def _ensure_judge(self) -> None:  # type: ignore[override]
        raise AssertionError("the answer was known")


def test_a_known_answer_needs_no_judge_and_fresh_asks_again(
    engine: LocalEngine,
    small_task: Task,
    quick: Options,
    wrong_source: str,
    tmp_path: Path,
) -> None:
    cache, candidate = EvaluationCache(tmp_path), Candidate(source=wrong_source)
    first = engine.evaluate(small_task, candidate, quick)
    cache.put(small_task, candidate, quick, first)
    remembering = NoJudge(cache)
    assert remembering.evaluate(small_task, candidate, quick) == first
    with pytest.raises(AssertionError, match="the answer was known"):
        remembering.evaluate(small_task, candidate, quick, fresh=True)
    with pytest.raises(AssertionError, match="the answer was known"):
        remembering.evaluate(small_task, candidate, quick.model_copy(update={"seeds": 1}))


# ---------------------------------------------------------------- another engine

SYSTEM_COMPILER = shutil.which("g++", path="/usr/bin") or shutil.which("clang++", path="/usr/bin")


@pytest.fixture(scope="module")
def another(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LocalEngine]:
    """An engine with a compiler in a folder of its own. The thread that started it has ended."""
    with pytest.MonkeyPatch.context() as patch:
        if SYSTEM_COMPILER is not None:
            folder = tmp_path_factory.mktemp("other-compiler")
            compiler = folder / "opt" / "bin" / "c++"
            compiler.parent.mkdir(parents=True)
            compiler.write_text(f'#!/bin/sh\nexec {SYSTEM_COMPILER} "$@"\n')
            for path in (compiler, *compiler.parents[:3]):
                path.chmod(0o755)
            patch.setenv("CXX", str(compiler))
        with LocalEngine() as engine:
            starter = threading.Thread(target=engine.process_ids)
            starter.start()
            starter.join()
            yield engine


@pytest.mark.slow
@pytest.mark.skipif(SYSTEM_COMPILER is None, reason="needs a compiler in /usr/bin as a stand-in")
def test_a_compiler_in_a_folder_of_its_own_works(
    another: LocalEngine, small_task: Task, quick: Options, honest_source: str
) -> None:
    unknown = f"{honest_source}\n".replace("extern", f"// {time.time()}\nextern", 1)
    evaluation = another.evaluate(small_task, Candidate(source=unknown), quick)
    assert evaluation.stage is Stage.OK, f"{evaluation.message} {evaluation.log}"
    assert evaluation.seconds["compiler alone"] > 0


def test_a_judge_outlives_the_thread_that_started_it(
    another: LocalEngine, small_task: Task, quick: Options, wrong_source: str
) -> None:
    """Engines are used from pools of threads, which come and go."""
    before = another.process_ids()
    evaluation = another.evaluate(small_task, Candidate(source=wrong_source), quick)
    assert evaluation.stage is Stage.INCORRECT
    assert another.process_ids() == before


# ---------------------------------------------------------------- what it survives


def test_a_zygote_has_nothing_open_of_the_judge_that_it_is_a_copy_of(another: LocalEngine) -> None:
    described = {
        role: sorted(os.listdir(f"/proc/{pid}/fd"), key=int)
        for role, pid in another.process_ids().items()
    }
    assert described["zygote"][:3] == ["0", "1", "2"]
    assert len(described["zygote"]) == 4  # and the socket by which it is asked
    assert len(described["judge"]) > 4


@pytest.mark.skipif(SYSTEM_COMPILER is None, reason="needs a compiler in /usr/bin as a stand-in")
def test_a_compiler_that_is_gone_is_missing(
    another: LocalEngine, small_task: Task, quick: Options, honest_source: str
) -> None:
    compiler = Path(os.environ["CXX"])
    away = compiler.rename(compiler.with_suffix(".away"))
    try:
        with pytest.raises(MissingPrerequisite, match=r"\$CXX names a compiler") as caught:
            another.evaluate(small_task, Candidate(source=honest_source), quick)
    finally:
        away.rename(compiler)
    assert "unset CXX" in caught.value.hint


def test_nothing_outlives_the_process_that_uses_the_engine() -> None:
    program = (
        "from kernel_smith.evaluation.engines import LocalEngine\n"
        "engine = LocalEngine()  # which is kept, and with it the judge\n"
        "print(engine.process_ids()['judge'], flush=True)\n"
        "input()\n"
    )
    user = subprocess.Popen(
        [sys.executable, "-c", program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with user:
        assert user.stdout is not None
        judge = int(user.stdout.readline())
        everyone = family(judge)
        assert len(everyone) >= 3, "the judge and both zygotes"
        user.kill()
    assert wait_until(lambda: not living(everyone))


@pytest.mark.parametrize(
    ("role", "moment"),
    [
        ("judge", "checking default"),
        pytest.param("zygote", "compile", marks=pytest.mark.sweep),
        ("zygote", "timing default"),
    ],
)
def test_killing_a_trusted_process_changes_no_verdict(
    engine: LocalEngine,
    small_task: Task,
    quick: Options,
    honest_source: str,
    wrong_source: str,
    role: str,
    moment: str,
) -> None:
    before = engine.process_ids()
    witnesses = family(before[role])
    reached = threading.Event()

    def report(what: str) -> None:
        if what == moment:
            reached.set()

    def kill() -> None:
        if reached.wait(120):
            os.kill(before[role], signal.SIGKILL)

    killer = threading.Thread(target=kill)
    killer.start()
    source = honest_source if moment == "timing default" else wrong_source
    evaluation = engine.evaluate(small_task, Candidate(source=source), quick, progress=report)
    killer.join()
    assert reached.is_set()
    expected = Stage.OK if source is honest_source else Stage.INCORRECT
    assert evaluation.stage is expected, evaluation.message
    again = engine.evaluate(small_task, Candidate(source=honest_source), quick)
    assert again.stage is Stage.OK
    assert engine.process_ids()[role] != before[role]
    assert wait_until(lambda: not living(witnesses))


def test_a_judge_that_dies_every_time_is_an_internal_error(
    small_task: Task, own_temp: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kernel_smith.evaluation.engines.local.sys.executable", "/bin/false")
    with LocalEngine() as engine, pytest.raises(InternalError, match="died 3 times") as caught:
        engine.evaluate(small_task, Candidate(source=""))
    assert f"Model and get_inputs of {small_task.path} run by themselves" in str(caught.value.hint)
    assert folders(own_temp) == []


@pytest.mark.slow
def test_closing_leaves_nothing_and_the_engine_can_be_used_again(
    another: LocalEngine, small_task: Task, own_temp: Path
) -> None:
    another.process_ids()  # its folder is elsewhere, where others' are
    for begun_here in (False, True):
        assert another.examine(small_task) == []
        everyone = family(another.process_ids()["judge"])
        assert len(everyone) >= 2
        assert len(folders(own_temp)) == begun_here
        another.close()
        another.close()
        assert wait_until(lambda pids=everyone: not living(pids))
        assert folders(own_temp) == []


def test_what_compiles_to_the_same_is_timed_no_more_than_briefly_unless_asked_to(
    engine: LocalEngine, small_task: Task, honest_source: str, quick: Options
) -> None:
    def judge(source: str, options: Options) -> Evaluation:
        return engine.evaluate(small_task, Candidate(source=source, name="c.py"), options)

    lazy = quick.model_copy(update={"time_twins": False, "seeds": 2})
    remarked = honest_source.replace('extern "C"', '/* the same */ extern "C"', 1)
    first, twin = judge(honest_source, lazy), judge(remarked, lazy)
    assert first.ok and twin.ok and first.binary == twin.binary is not None
    assert twin.twin == first.candidate_hash and twin.timing == first.timing
    again = judge(honest_source, lazy)
    assert again.twin is None and "timing" in again.seconds
    thorough = lazy.model_copy(update={"time_twins": True})
    assert judge(remarked, thorough).twin is None
