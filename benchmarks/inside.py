"""Where do the time and the device memory of an evaluation go? Step by step, process by process.

    python benchmarks/inside.py row_softmax --candidate kernel.py --json inside.jsonl
    python benchmarks/inside.py KernelBench/level3/43_*.py --precision tf32 --json inside.jsonl

A task is a name or a file. Without `--candidate` the program is the task's own reference, whose
result an authored Triton kernel copies, or, with `--seeds FOLDER`, what `kernelbench_judge.py` put
there for the problem. Two candidates of each task are judged, the second one with
everything prepared. The judge runs in this process, with its functions watched:

- how often each was called, and the seconds that it spent by itself (`own`) and with all that it
  called (`all`); `ask ...` is waiting for a process. Work on a GPU counts where somebody waits for
  it; with `--settle` each function waits for its own, which makes all of it slower;
- the most device memory that was in use in each step, beside what was in use before there was a
  judge; and at the worst moment of all, who held it: the judge's tensors, and memory that its
  allocator has kept; what it shares with processes; each process's chunks for results, and what
  else it has taken. The rest are contexts, which nobody can ask for. With `--contexts` each process
  that ends is waited for: what is free then and was not before, less the above, was its context;
- with `--profile`, what a process does in its first batch, which is where it gets ready: the
  functions that took most, by themselves.
"""

from __future__ import annotations

import argparse
import contextlib
import cProfile
import functools
import json
import os
import pstats
import subprocess
import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from kernelbench_judge import COPY

from kernel_smith.errors import UserError
from kernel_smith.evaluation.judge.inputs.checks import Comparer, LargeCheck, SmallCheck
from kernel_smith.evaluation.judge.inputs.reference import Reference
from kernel_smith.evaluation.judge.journal import Journal
from kernel_smith.evaluation.judge.judge import Judge
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.device import DevicePlatform
from kernel_smith.evaluation.judge.platform.device_participant import DeviceParticipant
from kernel_smith.evaluation.judge.platform.host import HostPlatform
from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.platform.quiet import Quiet
from kernel_smith.evaluation.judge.platform.result_watch import ResultWatch
from kernel_smith.evaluation.judge.processes.child import Child
from kernel_smith.evaluation.judge.processes.pool import ProcessPool
from kernel_smith.evaluation.judge.timing.verifier import TimedVerifier
from kernel_smith.evaluation.sandbox.begin import be_zygote, load_torch
from kernel_smith.evaluation.sandbox.confine import devices
from kernel_smith.evaluation.sandbox.device_memory import DeviceMemory
from kernel_smith.evaluation.sandbox.device_runner import DeviceRunner
from kernel_smith.evaluation.sandbox.memory import keep_large_memory
from kernel_smith.evaluation.sandbox.runner import Runner
from kernel_smith.records import Candidate, Evaluation, Options
from kernel_smith.tasks import find_task

MIB = 1 << 20
ALLOWANCE = 3 << 30
SETTLING_SECONDS = 0.25
LOOK_SECONDS = 0.002
MOST_PROFILED = 30
FUNCTIONS: dict[type, tuple[str, ...]] = {
    Reference: ("draw", "call", "oracle", "coarse", "library", "mutates", "give_memory_back"),
    Bench: ("look", "pool", "prepare", "work"),
    Participant: ("enter", "bind", "rewrite", "run", "release", "_take_results", "close"),
    DeviceParticipant: ("rewrite", "capture", "replay", "run_nothing", "profile", "_learn_places"),
    LargeCheck: ("draw", "compare", "agrees", "compare_timed"),
    SmallCheck: ("compare", "agrees"),
    Comparer: ("_doubtful_rows", "_is_open", "_ask_oracle", "_ask_whole_oracle"),
    TimedVerifier: ("__call__",),
    Quiet: ("make_cold", "is_busy"),
    ResultWatch: ("__init__",),
    Child: ("ready", "wait"),
}


@dataclass
class Spent:
    """Seconds of one function in one step."""

    calls: int = 0
    own: float = 0.0
    all: float = 0.0


@dataclass
class Watch:
    """What is seen of one evaluation."""

    settle: bool
    step: str = "before"
    spent: dict[tuple[str, str], Spent] = field(default_factory=lambda: defaultdict(Spent))
    peaks: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    worst: dict[str, Any] = field(default_factory=dict)
    most_held: dict[str, int] = field(default_factory=lambda: defaultdict(int))  # by a process
    first_batches: list[Any] = field(default_factory=list)
    contexts: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    children: list[Child] = field(default_factory=list)
    shared: int = 0  # bytes of memory that the judge made for processes
    base: int | None = None
    _open: list[tuple[str, float]] = field(default_factory=list)  # functions, and seconds below

    def start(self) -> None:
        self.spent.clear()
        self.peaks.clear()
        self.worst.clear()
        self.most_held.clear()
        self.first_batches.clear()
        self.contexts.clear()

    @contextlib.contextmanager
    def during(self, name: str) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        begin = time.perf_counter()
        self._open.append((name, 0.0))
        try:
            yield
        finally:
            if self.settle and self.base is not None:
                torch.cuda.synchronize()
            seconds = time.perf_counter() - begin
            _, below = self._open.pop()
            if self._open:
                caller, others = self._open[-1]
                self._open[-1] = (caller, others + seconds)
            spent = self.spent[self.step, name]
            spent.calls += 1
            spent.own += seconds - below
            spent.all += seconds

    def look(self) -> None:
        """Note how much of the device is in use, and, if it never was more, by whom."""
        if self.base is None:
            return
        free, total = torch.cuda.mem_get_info()
        used = total - free - self.base
        self.peaks[self.step] = max(self.peaks[self.step], used)
        if used > self.worst.get("used", 0):
            self.worst |= {"used": used, **self._holders()}

    def _holders(self) -> dict[str, Any]:
        kept = torch.cuda.memory_reserved() - torch.cuda.memory_allocated()
        processes = [
            {"child": id(child), "role": child.role, "before": child.held}  # type: ignore[attr-defined]
            for child in list(self.children)
        ]
        return {
            "step": self.step,
            "within": [name for name, _ in self._open],
            "tensors": torch.cuda.memory_allocated(),
            "kept": kept,
            "shared": self.shared,
            "processes": processes,
        }

    def hear(self, child: Any, held: dict[str, int]) -> None:
        """Note what a process holds after a request; it may have been in the midst of that at the
        worst moment."""
        child.held = held
        key = f"{self.step}, {child.role}"
        size = held.get("chunks", 0) + held.get("at most beside", 0)
        self.most_held[key] = max(self.most_held[key], size)
        for process in self.worst.get("processes", []):
            if process["child"] == id(child):
                process.setdefault("after", held)


def hook(owner: type, name: str, around: Callable[..., Any]) -> None:
    """Put `around` before a method of the same name; it gets the method and the arguments."""
    method = owner.__dict__[name]
    setattr(owner, name, functools.wraps(method)(lambda *a, **k: around(method, *a, **k)))


def watch_processes(profile: bool) -> None:
    """Have processes say with each answer what they hold. Before the zygote is forked."""
    kind: type = DeviceRunner if devices.nodes() else Runner
    original = kind._handlers  # type: ignore[attr-defined]

    def handlers(runner: Any) -> dict[str, Any]:
        asked = original(runner)
        if profile:
            asked["go"] = profiling_first(asked["go"])
        return {name: telling(runner, handler) for name, handler in asked.items()}

    kind._handlers = handlers  # type: ignore[attr-defined]


def telling(runner: Any, handler: Any) -> Any:
    def handle(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        answer: dict[str, Any] = handler(request, fds)
        return answer | {"held": held_by(runner)}

    return handle


def profiling_first(go: Any) -> Any:
    left = [True]

    def handle(request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        if not left:
            return dict(go(request, fds))
        left.clear()
        profile = cProfile.Profile()
        answer: dict[str, Any] = profile.runcall(go, request, fds)
        found = sorted(pstats.Stats(profile).stats.items(), key=lambda item: -item[1][2])  # type: ignore[attr-defined]
        functions = [
            [f"{Path(file).name}:{line} {name}", calls, round(own, 4), round(everything, 4)]
            for (file, line, name), (_, calls, own, everything, _) in found[:MOST_PROFILED]
        ]
        return answer | {"functions": functions}

    return handle


def held_by(runner: Any) -> dict[str, int]:
    """In a process: its chunks, and what its allocator has beside them, now and at most since it
    was asked last."""
    memory = getattr(runner, "_memory", None)
    if memory is None:
        return {}
    chunks = [*memory._chunks, *memory._former]
    used = sum(memory._used.values())
    most, now = torch.cuda.max_memory_reserved(), torch.cuda.memory_reserved()
    torch.cuda.reset_peak_memory_stats()
    return {
        "chunks": sum(chunk.size for chunk in chunks),
        "number of chunks": len(chunks),
        "used of chunks": used,
        "beside": now - used,
        "at most beside": most - used,
    }


def watch_judge(watch: Watch, contexts: bool) -> None:
    """After the zygote was forked."""
    for owner, names in FUNCTIONS.items():
        for name in names:
            watch_function(watch, owner, name)

    def answer(method: Any, child: Any, op: str, timeout: float) -> Any:
        with watch.during(f"ask {op}"):
            found = method(child, op, timeout)
        if "functions" in found:
            watch.first_batches.append([watch.step, child.role, found.pop("functions")])
        if "held" in found:
            watch.hear(child, found.pop("held"))
        return found

    def start(method: Any, *arguments: Any, **more: Any) -> Any:
        child = method(*arguments, **more)
        child.role, child.held = "spare" if more.get("gpu") else "", {}
        watch.children.append(child)
        return child

    def end(method: Any, processes: Any, child: Any) -> None:
        if child in watch.children:
            watch.children.remove(child)
        free = torch.cuda.mem_get_info()[0] if contexts else 0
        method(processes, child)
        if contexts and getattr(child, "role", ""):
            child.exit_report()
            freed = torch.cuda.mem_get_info()[0] - free
            known = child.held.get("chunks", 0) + child.held.get("beside", 0)
            watch.contexts[child.role].append(freed - known)

    def participant(method: Any, platform: Any, name: str, child: Any, limits: Any) -> Any:
        child.role = name
        return method(platform, name, child, limits)

    def create(size: int) -> Any:
        memory = make(size)
        memory.is_ours = True  # type: ignore[attr-defined]
        watch.shared += memory.size
        return memory

    def close(method: Any, memory: Any) -> None:
        ours = memory._handle and getattr(memory, "is_ours", False)
        watch.shared -= memory.size if ours else 0
        method(memory)

    @contextlib.contextmanager
    def step(method: Any, journal: Any, name: str) -> Iterator[None]:
        before, watch.step = watch.step, name
        try:
            with method(journal, name), watch.during("step"):
                yield
        finally:
            watch.step = before

    hook(Child, "answer", answer)
    hook(ProcessPool, "start", start)
    hook(ProcessPool, "end", end)
    for platform in (DevicePlatform, HostPlatform):
        hook(platform, "participant", participant)
    make, DeviceMemory.create = DeviceMemory.create, create  # type: ignore[method-assign]
    hook(DeviceMemory, "close", close)
    hook(Journal, "step", step)


def watch_function(watch: Watch, owner: type, name: str) -> None:
    def around(method: Any, *arguments: Any, **more: Any) -> Any:
        with watch.during(f"{owner.__name__}.{name}"):
            return method(*arguments, **more)

    hook(owner, name, around)


def keep_looking(watch: Watch, over: threading.Event) -> None:
    while not over.wait(LOOK_SECONDS):
        watch.look()


def candidate_for(task: Any, path: Path | None, backend: str, mark: str) -> Candidate:
    source = path.read_text() if path is not None else task.source + COPY
    return Candidate(source=f"{source}\n# {mark}\n", name="candidate.py", backend=backend)


def seed_of(task: Any, folder: Path) -> Path:
    """The file that `kernelbench_judge.py` names after a problem, such as 2_12.py."""
    problem = Path(task.path)
    return folder / f"{problem.parent.name[-1]}_{problem.name.partition('_')[0]}.py"


def describe(watch: Watch, evaluation: Evaluation, wall: float, allowed: int) -> dict[str, Any]:
    return {
        "task": evaluation.task,
        "end": str(evaluation.reason or evaluation.stage),
        "wall": round(wall, 3),
        "seconds": {name: round(spent, 3) for name, spent in evaluation.seconds.items()},
        "allowed_mib": allowed // MIB,
        "peak_mib": {step: used // MIB for step, used in watch.peaks.items() if used > 0},
        "held_mib": {who: size // MIB for who, size in watch.most_held.items() if size > 0},
        "contexts_mib": in_mib(watch.contexts),
        "worst": in_mib(watch.worst),
        "spent": [
            [step, name, spent.calls, round(spent.own, 4), round(spent.all, 4)]
            for (step, name), spent in sorted(watch.spent.items(), key=lambda item: -item[1].own)
            if spent.all >= 5e-4
        ],
        "first_batches": list(watch.first_batches),
    }


def in_mib(value: Any) -> Any:
    if isinstance(value, dict):
        sizes = {key: each for key, each in value.items() if key != "child"}
        return {k: v if k == "number of chunks" else in_mib(v) for k, v in sizes.items()}
    if isinstance(value, list):
        return [in_mib(each) for each in value]
    return value // MIB if isinstance(value, int) else value


def show(row: dict[str, Any], most: int = 24) -> None:
    print(f"\n{row['task']} {row['turn']}: {row['end']}, {row['wall']} s, {row['seconds']}")
    if row["worst"]:
        worst = dict(row["worst"])
        used, processes = worst.pop("used"), worst.pop("processes")
        print(f"  {used} MiB at most, {row['allowed_mib']} allowed; by step {row['peak_mib']}")
        print(f"  held by processes at most: {row['held_mib']}; contexts {row['contexts_mib']}")
        print(f"  at the worst moment: {worst}")
        for process in processes:
            told = ", ".join(f"{when} {process.get(when)}" for when in ("before", "after"))
            print(f"    {process['role']}: {told}")
    for step, name, calls, own, everything in row["spent"][:most]:
        print(f"  {step:18} {name:36} {calls:5} times, own {own:7.3f} s, all {everything:7.3f} s")
    for step, role, functions in row["first_batches"]:
        print(f"  the first batch of {role}, {step}:")
        for name, calls, own, everything in functions:
            print(f"    {name:60} {calls:6} times, own {own:7.4f} s, all {everything:7.4f} s")


def judge_twice(
    judge: Judge, watch: Watch, task: Any, chosen: argparse.Namespace
) -> Iterator[dict[str, Any]]:
    for turn in ("first", "second"):
        while judge.use_idle_time():
            pass
        time.sleep(SETTLING_SECONDS)
        watch.start()
        path = chosen.candidate if chosen.seeds is None else seed_of(task, chosen.seeds)
        candidate = candidate_for(task, path, chosen.backend, turn)
        begin = time.perf_counter()
        evaluation = judge.evaluate(task, candidate, Options(), lambda _: None)
        wall = time.perf_counter() - begin
        benches = [b for b in judge._benches.values() if b.task.content_hash == task.content_hash]
        lanes = [f.lane for bench in benches for f in bench.footprints().values()]
        yield describe(watch, evaluation, wall, max(lanes, default=0) + ALLOWANCE) | {"turn": turn}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="+")
    parser.add_argument("--candidate", type=Path)
    parser.add_argument("--seeds", type=Path, help="programs that kernelbench_judge.py made")
    parser.add_argument("--backend", default="triton")
    parser.add_argument("--precision")
    parser.add_argument("--contexts", action="store_true")
    parser.add_argument("--settle", action="store_true")
    parser.add_argument("--profile", action="store_true")
    parser.add_argument("--json", type=Path, required=True)
    chosen = parser.parse_args()
    tasks = [find_task(name, chosen.precision) for name in chosen.tasks]
    watch, over = Watch(chosen.settle), threading.Event()
    with tempfile.TemporaryDirectory() as folder:
        processes = ProcessPool(Path(folder))
        load_torch()
        watch_processes(chosen.profile)
        processes.begin(be_zygote)
        keep_large_memory()
        contexts = chosen.contexts and torch.cuda.is_available()
        watch_judge(watch, contexts)
        judge = Judge(processes)
        os.sched_setaffinity(0, judge.place.judge)
        torch.set_num_threads(len(judge.place.judge))
        if torch.cuda.is_available():
            free, total = torch.cuda.mem_get_info()  # with a context of its own by now
            watch.base = total - free - own_context()
        looking = threading.Thread(target=keep_looking, args=(watch, over), daemon=True)
        looking.start()
        try:
            with chosen.json.open("a") as file:
                for task in tasks:
                    try:
                        for row in judge_twice(judge, watch, task, chosen):
                            print(json.dumps(row), file=file, flush=True)
                            show(row)
                    except UserError as error:
                        print(f"{task.name}: {error.what}", flush=True)
        finally:
            watch.contexts.clear()
            judge.close()
            over.set()
            looking.join()
            processes.close()
            if contexts:
                free, total = torch.cuda.mem_get_info()
                own = total - free - watch.base - torch.cuda.memory_reserved()
                watch.contexts["judge"].append(own)
                print(f"contexts of those that stayed: {in_mib(watch.contexts)}")


def own_context() -> int:
    """What a context takes: this process's, found by starting another one beside it."""
    ask = "import torch; torch.zeros(1, device='cuda'); print(input())"
    free = torch.cuda.mem_get_info()[0]
    other = subprocess.Popen(
        [sys.executable, "-c", ask], stdin=subprocess.PIPE, stdout=subprocess.DEVNULL
    )
    assert other.stdin is not None
    least, deadline = free, time.monotonic() + 20
    while time.monotonic() < deadline and least > free - 64 * MIB:
        time.sleep(0.1)
        least = torch.cuda.mem_get_info()[0]
    time.sleep(0.5)
    taken = free - torch.cuda.mem_get_info()[0]
    other.communicate(b"\n")
    return taken


if __name__ == "__main__":
    main()
