"""What many tests share: quick options, small tasks with right and wrong programs, and a judge."""

from __future__ import annotations

import contextlib
import gc
import logging
import os
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from ready_hypothesis import know_utf_8, try_no_constants
from warm_seeds import Seeds

from kernel_smith.evaluation.engines import LocalEngine, pool
from kernel_smith.evaluation.engines.local import Progress
from kernel_smith.evaluation.sandbox.zygote import PATIENT_THREADS
from kernel_smith.proposers.seed import make
from kernel_smith.proposers.tuner import sweeping
from kernel_smith.records import Options, Sampling, Task
from kernel_smith.runs import presets
from kernel_smith.tasks import read_task

# How long an example takes says nothing on a machine that also compiles and measures. Examples are
# other ones each time, so that many runs see more of them than one long run; not in `make test`.
settings.register_profile("kernel-smith", deadline=None, max_examples=50)
settings.register_profile("few", deadline=None, max_examples=20)
settings.load_profile("kernel-smith")


def pytest_configure(config: pytest.Config) -> None:
    """Workers that run side by side have a core each: a judge waits for one whose timed core is the
    same. One more than there are cores uses whichever stands idle, because its worker waits.

    Threads of PyTorch's that wait for one another do not spin, which would double what they take
    beside other workers."""
    os.environ.update(PATIENT_THREADS)
    know_utf_8()
    if config.getoption("--hypothesis-seed") is not None:  # the same examples are wanted
        try_no_constants()
    worker = os.environ.get("PYTEST_XDIST_WORKER")
    cores = sorted(os.sched_getaffinity(0))
    if worker is not None:
        number = int(worker.removeprefix("gw"))
        _begin_elsewhere(config, number / int(os.environ["PYTEST_XDIST_WORKER_COUNT"]))
        if number < len(cores):
            os.sched_setaffinity(0, {cores[number]})


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected is never garbage: it takes seconds to search it meanwhile, and
    half a second each time later."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _begin_elsewhere(config: pytest.Config, share: float) -> None:
    """Have each worker begin to collect in another folder. What one has compiled, which takes most
    of the time, is there when the next comes to it."""
    here = Path(__file__).parent
    if [config.rootpath / path for path in config.args] == [here]:
        folders = sorted(path for path in here.iterdir() if any(path.rglob("test_*.py")))
        first = int(share * len(folders))
        config.args = [str(folder) for folder in folders[first:] + folders[:first]]


# What these import first takes as long as their tests: one worker does all of them.
_TOGETHER = ("tests/proposers/", "tests/training/")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Give a worker a file at a time, or a folder that is better done by one."""
    from xdist.scheduler import LoadFileScheduling

    class Scheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = super()._split_scope(nodeid)
            return next((folder for folder in _TOGETHER if file.startswith(folder)), file)

    return Scheduling(config, log) if config.getoption("dist") == "loadfile" else None


# Whoever asks for one of these waits for a process that imports torch, and for more.
_SLOW_FIXTURES = frozenset({"engine", "cluster", "compile_source", "program", "tiny_model"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files with slow tests come first: no worker is left with a long one at the end."""
    for item in items:
        if not _SLOW_FIXTURES.isdisjoint(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    long = {item.path for item in items if item.get_closest_marker("slow")}
    items.sort(key=lambda item: (item.path not in long, item.path))


SHIFTED_RELU = """
import torch

TASK = {"variants": ["large"]}


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1


def get_inputs():
    return [torch.randn(32, 64)]
"""

HONEST = '''
import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>

extern "C" void shifted_relu(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = (x[i] > 0 ? x[i] : 0) + 1;
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.shifted_relu(x, y, x.numel())
        return y
'''

WriteTask = Callable[..., Task]


@pytest.fixture
def quick() -> Options:
    """As little measuring as possible, and no verdict on how quiet the machine is."""
    sampling = Sampling(target=10.0, unstable_above=1e9, min_rounds=3, max_rounds=4, max_seconds=5)
    return Options(seeds=2, sampling=sampling)


@pytest.fixture
def errors_logged() -> Iterator[list[logging.LogRecord]]:
    """What anybody logs meanwhile that is an error, or worse."""
    records: list[logging.LogRecord] = []
    handler = logging.Handler(logging.ERROR)
    handler.emit = records.append  # type: ignore[method-assign]
    logging.getLogger().addHandler(handler)
    yield records
    logging.getLogger().removeHandler(handler)


@pytest.fixture
def processes_with() -> Callable[[str], list[str]]:
    """Finds the processes on whose command line an argument stands."""

    def find(argument: str) -> list[str]:
        found = []
        for entry in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):  # it has ended since
                if argument.encode() in entry.read_bytes().split(b"\0"):
                    found.append(entry.parent.name)
        return found

    return find


@pytest.fixture
def write_task(tmp_path: Path) -> WriteTask:
    """Reads a task from text: `write_task(source, name="task_under_test")`."""

    def write(source: str, name: str = "task_under_test") -> Task:
        path = tmp_path / f"{name}.py"
        path.write_text(source, encoding="utf-8")
        return read_task(path)

    return write


@pytest.fixture(scope="session")
def small_task(tmp_path_factory: pytest.TempPathFactory) -> Task:
    path = tmp_path_factory.mktemp("small-task") / "shifted_relu.py"
    path.write_text(SHIFTED_RELU, encoding="utf-8")
    return read_task(path)


@pytest.fixture(scope="session")
def honest_source() -> str:
    """A right program for `small_task`."""
    return HONEST


@pytest.fixture(scope="session")
def wrong_source() -> str:
    """A program for `small_task` that forgets to shift."""
    return HONEST.replace(": 0) + 1", ": 0)")


@pytest.fixture(scope="session")
def object_cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A cache that only this test run uses; workers share it, which looks at every task once."""
    own = tmp_path_factory.getbasetemp()
    path = (own.parent if "PYTEST_XDIST_WORKER" in os.environ else own) / "object-cache"
    path.mkdir(exist_ok=True)
    return path


@pytest.fixture(scope="session")
def engine(object_cache: Path) -> Iterator[LocalEngine]:
    """One judge for the whole test run, with a cache of compiled objects but not of verdicts."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_SMITH_CACHE", str(object_cache))
        with LocalEngine() as engine:
            engine.process_ids()
            yield engine


@pytest.fixture(autouse=True, scope="session")
def warm_seeds() -> Iterator[Seeds]:
    """Seeds are made in processes that have the compiler imported, save where a test wants its
    own (`cold_seeds`)."""
    with pytest.MonkeyPatch.context() as patch:
        seeds = Seeds()
        patch.setattr(make, "_start", seeds.start)
        yield seeds


_start_cold = make._start


@pytest.fixture
def cold_seeds(warm_seeds: Seeds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Seeds are made in new processes, as users have it."""
    monkeypatch.setattr(make, "_start", _start_cold)


@pytest.fixture(scope="session")
def borrowing(engine: LocalEngine) -> type[LocalEngine]:
    """A kind of engine that asks the judge of the test run, and leaves it alone when closed."""

    class Borrowing(LocalEngine):
        def _ask(self, request: dict[str, Any], progress: Progress) -> dict[str, Any]:
            return engine._ask(request, progress)

    return Borrowing


@pytest.fixture
def lanes_share_the_judge(borrowing: type[LocalEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    """The lanes of a pool ask the judge of the test run, instead of starting their own."""
    monkeypatch.setattr(pool, "LocalEngine", borrowing)


@pytest.fixture
def quick_runs(
    lanes_share_the_judge: None, quick: Options, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs ask the judge of the test run, too, and have it measure little: enough to be certain
    that the programs of `slow` are faster than eager PyTorch. They sweep little as well."""
    sampling = quick.sampling.model_copy(update={"min_rounds": 12, "max_rounds": 12})
    options = quick.model_copy(update={"sampling": sampling})
    monkeypatch.setattr(presets, "_OPTIONS", options)
    monkeypatch.setattr(presets, "_CONFIRMATION", options)
    monkeypatch.setattr(sweeping, "CONFIGURATIONS", 3)
