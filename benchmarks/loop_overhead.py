"""What the loop itself costs: iterations per second with evaluations that take no time.

    python benchmarks/loop_overhead.py --json results.json [--iterations 100 1000 10000]
        [--openevolve --openevolve-python PATH]

A local proposer changes one number of a program of realistic size; a trivial engine makes up its
evaluation; every step is stored with a prompt of realistic size, as a run with a model would. Then
the model proposer does the same, over HTTP, with a server on this machine (a process of its own)
that answers at once. Then a slow proposer (2 s) and a slow evaluation (0.5 s) show how busy the
loop keeps its one device, and proposals and evaluations of 0.5 s each, as many at a time as there
are lanes, how busy it keeps several. Whoever looks best is measured again in all of these.

Imports and the first connection come before the clock starts: each proposer warms up with a short
run. With `--openevolve`, OpenEvolve does the same with the same server, from a Python environment
where it is installed; its clock starts with its first child, so the start of its processes does not
count either.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import multiprocessing
import os
import random
import resource
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from common import describe_machine

from kernel_smith.proposers.base import InThreads, Worker, parent_of
from kernel_smith.proposers.model import ModelProposer, make_settings
from kernel_smith.records import (
    Budget,
    Candidate,
    Conversation,
    Evaluation,
    Message,
    Proposal,
    Request,
    RunConfig,
    Task,
    Usage,
)
from kernel_smith.runs.run import Run
from kernel_smith.store import Store
from kernel_smith.testing.openai_server import OpenAIServer, Reply
from kernel_smith.testing.trivial import TrivialEngine

PROGRAM = "# {filler}\nclass ModelNew:\n    def forward(self): ...\n    speed = {speed:.9f}\n"
FILLER = "a line of a kernel, " * 150
WARM_UP = 30
PREFIX = "The rules of the task, which are the same each time. " * 300


def program(speed: float) -> Candidate:
    return Candidate(source=PROGRAM.format(filler=FILLER, speed=speed))


def speed_of(candidate: Candidate) -> float:
    return float(candidate.source.rpartition("=")[2])


class Nudger:
    """Changes the number, after a while, and says that a model did it."""

    name = "nudger"

    def __init__(self, seconds: float = 0.0, seed: int = 0) -> None:
        self._seconds = seconds
        self._lock = threading.Lock()
        self._seed = seed
        self._count = 0

    def propose(self, request: Request) -> Proposal:
        if self._seconds:
            time.sleep(self._seconds)
        with self._lock:
            self._count += 1
            rng = random.Random(f"{self._seed}/{self._count}")
        parent = parent_of(request).candidate
        child = program(rng.uniform(0.5, 1.0))
        asked = f"{PREFIX}\n{parent.source}\nattempt {self._count}"
        conversation = Conversation(
            model="none",
            messages=(
                Message(role="system", content=PREFIX),
                Message(role="user", content=asked[len(PREFIX) :]),
            ),
            response=child.source,
            usage=Usage(prompt_tokens=5000, completion_tokens=900, requests=1),
        )
        return Proposal(
            candidate=child,
            proposer=self.name,
            parents=(parent.content_hash,),
            conversation=conversation,
        )

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        """Nothing to learn."""


def answer(request: dict[str, Any]) -> Reply:
    text = program(random.uniform(0.5, 1.0)).source
    streamed = bool(request.get("stream"))
    return Reply(f"Change: another number\n```python\n{text}```\n", stream=streamed)


class ForgetfulServer(OpenAIServer):
    """Keeps nothing of what it was asked: it would get slower with every request."""

    def next_reply(self, request: dict[str, Any], headers: dict[str, str], client: int) -> Reply:
        return answer(request)


def serve(addresses: Any, end: Any) -> None:
    with ForgetfulServer(answer) as server:
        addresses.put(server.base_url)
        end.wait()


@contextlib.contextmanager
def endpoint() -> Iterator[str]:
    """The address of a server that answers at once, in a process of its own."""
    context = multiprocessing.get_context("spawn")
    addresses, end = context.Queue(), context.Event()
    server = context.Process(target=serve, args=(addresses, end))
    server.start()
    try:
        yield addresses.get(timeout=60)
    finally:
        end.set()
        server.join()


def run(
    iterations: int, folder: Path, model: ModelProposer | None = None, **settings: Any
) -> dict[str, Any]:
    name = "nudger" if model is None else "model"
    lanes = settings.get("lanes", 1)
    config = RunConfig(
        backend="cpp",
        proposers={name: 1.0},
        budget=Budget(evaluations=iterations),
        proposals_in_flight=settings.get("proposals", 2),
        evaluations_in_flight=lanes,
    )
    engine = TrivialEngine(speed_of, seconds=settings.get("evaluation", 0.0), lanes=lanes)
    path = folder / f"{name}-{iterations}-{settings.get('proposals', 2)}-{lanes}.sqlite"
    load = round(os.getloadavg()[0], 1)
    task = Task(name="numbers", source=f"# {PREFIX}\nclass Model: pass\n")
    with Store.open(path, create=True) as store, Run.start(store, task, config) as opened:
        nudger = InThreads(Nudger(settings.get("proposal", 0.0)), config.proposals_in_flight)
        workers: dict[str, Worker] = {name: model or nudger}
        loop = opened.evolve(workers, engine, lambda *_: None)
        begin, processor = time.monotonic(), time.process_time()
        first = Proposal(candidate=program(0.5), proposer="start")
        loop.run([("start", lambda: first)])
        spent, processor = time.monotonic() - begin, time.process_time() - processor
    size = sum(part.stat().st_size for part in folder.glob(f"{path.name}*"))
    return {
        "proposer": name,
        "iterations": iterations,
        "seconds": round(spent, 2),
        "per_second": round(iterations / spent, 1),
        "processor_ms_per_step": round(1000 * processor / iterations, 2),
        "load_before": load,
        "bytes_per_candidate": round(size / iterations),
        "peak_memory_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "lanes": lanes,
        "device_busy": round(engine.busy_seconds / spent / lanes, 3),
    }


OPENEVOLVE = """
import importlib.metadata, json, os, pathlib, sys, time
from openevolve import run_evolution
from openevolve.config import Config, LLMConfig, LLMModelConfig
from openevolve.database import ProgramDatabase

folder, settings = pathlib.Path(sys.argv[1]), json.loads(sys.argv[2])
config = Config(diff_based_evolution=False)
models = [LLMModelConfig(name="local")]
config.llm = LLMConfig(api_base=settings["url"], api_key="none", models=models)
config.prompt.system_message = (folder / "prefix.txt").read_text()
config.evaluator.parallel_evaluations = settings["workers"]

children = []
add = ProgramDatabase.add
def timed_add(*args, **kwargs):
    if "iteration" in kwargs:  # the first program and migrants have none
        children.append(time.monotonic())
    return add(*args, **kwargs)
ProgramDatabase.add = timed_add

load = round(os.getloadavg()[0], 1)
run_evolution(
    str(folder / "program.py"),
    str(folder / "evaluator.py"),
    config=config,
    iterations=settings["iterations"],
    output_dir=str(folder / "output"),
    cleanup=False,
)
spent = time.monotonic() - children[0]
outcome = {
    "version": importlib.metadata.version("openevolve"),
    "workers": settings["workers"],
    "iterations": settings["iterations"],
    "children": len(children),
    "seconds": round(spent, 2),
    "per_second": round((len(children) - 1) / spent, 1),
    "load_before": load,
}
(folder / "outcome.json").write_text(json.dumps(outcome))
"""

EVALUATOR = """
def evaluate(path):
    with open(path) as file:
        return {"combined_score": float(file.read().rpartition("=")[2])}
"""


def run_openevolve(python: Path, url: str, iterations: int, workers: int) -> dict[str, Any]:
    """Its own defaults, but for whole programs instead of edits, and the number of workers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "prefix.txt").write_text(PREFIX)
        (folder / "program.py").write_text(program(0.5).source)
        (folder / "evaluator.py").write_text(EVALUATOR)
        settings = json.dumps({"url": url, "iterations": iterations, "workers": workers})
        with (folder / "log.txt").open("w") as log:
            command = [str(python), "-c", OPENEVOLVE, name, settings]
            status = subprocess.run(command, stdout=log, stderr=log, check=False).returncode
        if status:
            raise SystemExit("OpenEvolve failed:\n" + (folder / "log.txt").read_text()[-2000:])
        outcome: dict[str, Any] = json.loads((folder / "outcome.json").read_text())
    return outcome


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--iterations", type=int, nargs="+", default=[100, 1000, 10000])
    parser.add_argument("--busy-evaluations", type=int, default=120)
    parser.add_argument("--lanes", type=int, nargs="*", default=[4, 8, 16])
    parser.add_argument("--openevolve", action="store_true", help="measure OpenEvolve, too")
    parser.add_argument("--openevolve-python", type=Path, default=Path("python3"))
    parser.add_argument("--openevolve-iterations", type=int, nargs="+", default=[100, 1000])
    parser.add_argument("--openevolve-workers", type=int, nargs="+", default=[1, 2])
    parser.add_argument("--json", type=Path, default=None)
    chosen = parser.parse_args()
    report: dict[str, Any] = {"machine": describe_machine(), "loop": [], "openevolve": []}
    with tempfile.TemporaryDirectory() as name:
        run(WARM_UP, Path(name))
        for iterations in chosen.iterations:
            report["loop"].append(run(iterations, Path(name)))
            print(json.dumps(report["loop"][-1]), flush=True)
        with endpoint() as url:
            model = ModelProposer(make_settings({"models": [{"name": "local", "base_url": url}]}))
            run(WARM_UP, Path(name), model, proposals=8)
            for iterations in chosen.iterations:
                report["loop"].append(run(iterations, Path(name), model, proposals=8))
                print(json.dumps(report["loop"][-1]), flush=True)
            model.close()
            for iterations in chosen.openevolve_iterations if chosen.openevolve else ():
                for workers in chosen.openevolve_workers:
                    found = run_openevolve(chosen.openevolve_python, url, iterations, workers)
                    report["openevolve"].append(found)
                    print(json.dumps(found), flush=True)
        slow = {"proposal": 2.0, "evaluation": 0.5, "proposals": 8}
        report["busy"] = run(chosen.busy_evaluations, Path(name), **slow)
        print(json.dumps(report["busy"]), flush=True)
        report["lanes"] = []
        for lanes in chosen.lanes:
            even = {"proposal": 0.5, "evaluation": 0.5, "proposals": 2 * lanes, "lanes": lanes}
            report["lanes"].append(run(chosen.busy_evaluations * lanes, Path(name), **even))
            print(json.dumps(report["lanes"][-1]), flush=True)
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
