"""What does an evaluation cost beside compiling, running and the requested samples?

After start-up, candidates that the engine has not seen before are evaluated one after the other:
first with new kernels, and then with known kernels in a new program, for which nothing has to be
compiled. The overhead of one is its wall time less compiling, less the candidate's own calls, less
timing. Beside it: the answer to a repeated candidate, the naive way, a new interpreter that imports
torch, loads the candidate and calls it once, without any check, and what timing takes at its usual
length, which includes rounds that are not counted.

    python benchmarks/overhead.py [--candidates 20] [--timings 3] [--json results.json]

Another version's sources in PYTHONPATH say what these took then.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from common import describe_machine, progress

from kernel_smith.evaluation.engines import EvaluationCache, LocalEngine
from kernel_smith.records import Candidate, Options, Sampling, Task
from kernel_smith.tasks import find_task

TASKS = ("row_softmax", "layer_norm", "matmul", "max_pool2d", "topk_routing")

NAIVE = """
import sys, torch
scope = {"__name__": "candidate"}
exec(open(sys.argv[1]).read(), scope)
task = {"__name__": "task"}
exec(open(sys.argv[2]).read(), task)
arguments = task["get_init_inputs"]() if "get_init_inputs" in task else []
scope["ModelNew"](*arguments)(*task["get_inputs"]())
"""


def timed(action) -> tuple[float, object]:
    begin = time.perf_counter()
    value = action()
    return time.perf_counter() - begin, value


def new_kernel(source: str, index: int) -> str:
    return source.replace('r"""', f'r"""\n// variant {os.getpid()}.{index}\n')


def new_program(source: str, index: int) -> str:
    return f"{source}\n# variant {index}\n"


def measure_overheads(
    engine: LocalEngine, task: Task, sources: list[str], options: Options
) -> tuple[list[float], list[float], list[float]]:
    """Overheads, whole evaluations, and answers to the same question once more; in seconds."""
    overheads, totals, repeats = [], [], []
    for index, source in enumerate(sources):
        candidate = Candidate(source=source)
        total, evaluation = timed(lambda c=candidate: engine.evaluate(task, c, options))
        if not evaluation.ok:
            raise SystemExit(f"{task.name}: {evaluation.stage} {evaluation.reason}")
        spent = evaluation.seconds
        outside = spent["compiler alone"] + spent["calls before timing"] + spent["timing"]
        overheads.append(total - outside)
        totals.append(total)
        repeats.append(timed(lambda c=candidate: engine.evaluate(task, c, options))[0])
        progress(f"{task.name}: {index + 1} of {len(sources)}")
    return overheads, totals, repeats


def measure_timing(engine: LocalEngine, task: Task, sources: list[str]) -> dict[str, float]:
    """What timing takes at its usual length: in all, and per round that counts."""
    seconds, rounds = [], []
    for source in sources:
        evaluation = engine.evaluate(task, Candidate(source=source))
        seconds.append(evaluation.seconds["timing"])
        rounds.append(sum(workload.rounds for workload in evaluation.timing.workloads))
    return {
        "timing_ms": milliseconds(seconds),
        "timing_rounds": statistics.median(rounds),
        "timing_ms_per_round": round(sum(seconds) / sum(rounds) * 1e3, 2),
    }


def measure_task(
    engine: LocalEngine, task: Task, count: int, timings: int, options: Options
) -> dict:
    source = Path(task.starts["cpp"]).read_text()
    engine.evaluate(task, Candidate(source=source), options)  # start-up: reference, secret inputs
    kernels = [new_kernel(source, index) for index in range(count)]
    programs = [new_program(source, index) for index in range(count)]
    others = [new_program(source, count + index) for index in range(timings)]
    overheads, totals, repeats = measure_overheads(engine, task, kernels, options)
    known_overheads, _, _ = measure_overheads(engine, task, programs, options)
    command = [sys.executable, "-c", NAIVE, task.starts["cpp"], task.path]
    naive = [timed(lambda: subprocess.run(command, check=True))[0] for _ in range(5)]
    return {
        "overhead_ms": milliseconds(overheads),
        "overhead_worst_ms": round(max(overheads) * 1e3, 1),
        "overhead_known_kernels_ms": milliseconds(known_overheads),
        "repeated_candidate_ms": milliseconds(repeats),
        "whole_evaluation_ms": milliseconds(totals),
        "naive_ms": milliseconds(naive),
        "naive_over_overhead": round(statistics.median(naive) / statistics.median(overheads), 1),
        **(measure_timing(engine, task, others) if others else {}),
    }


def milliseconds(seconds: list[float]) -> float:
    return round(statistics.median(seconds) * 1e3, 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--candidates", type=int, default=20)
    parser.add_argument("--timings", type=int, default=3, help="at their usual length")
    parser.add_argument("--tasks", nargs="+", default=TASKS)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    sampling = Sampling(target=10, unstable_above=1e9, min_rounds=5, max_rounds=5)
    options = Options(sampling=sampling)
    results: dict[str, object] = {"machine": describe_machine()}
    with tempfile.TemporaryDirectory() as folder:
        cache = EvaluationCache(Path(folder))
        for name in arguments.tasks:
            with LocalEngine(cache) as engine:
                results[name] = measure_task(
                    engine, find_task(name), arguments.candidates, arguments.timings, options
                )
            text = json.dumps(results, indent=2)
            if arguments.json:
                arguments.json.write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
