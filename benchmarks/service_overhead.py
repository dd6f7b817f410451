"""What does it cost to evaluate through a service instead of directly?

The same programs are evaluated by a pool of judges in this process, and by `kernel-smith serve`
with as many lanes for several clients at once, in turn. Both start afresh; their judges are warm,
with all tasks ready, before the clock runs. Every program is new to whoever evaluates it.

    python benchmarks/service_overhead.py [--backend cpp] [--lanes 1] [--clients 4] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import ExitStack
from pathlib import Path

from common import describe_machine, progress
from honest_programs import BACKENDS, honest_programs, with_mark
from service_process import Server

from kernel_smith.evaluation.engines import open_engine
from kernel_smith.evaluation.engines.base import Engine
from kernel_smith.records import Candidate, Evaluation, Options, Sampling, Task

Programs = list[tuple[Task, Candidate]]

OPTIONS = Options(
    profile=False, sampling=Sampling(target=0.02, min_rounds=6, max_rounds=20, max_seconds=0.6)
)


def submit(engine: Engine, chosen: Programs, marks: Sequence[str]) -> list[Future[Evaluation]]:
    return [
        engine.submit(task, with_mark(candidate, mark), OPTIONS)
        for mark in marks
        for task, candidate in chosen
    ]


def per_minute(engines: list[Engine], chosen: Programs, repeats: int, name: str) -> float:
    """Evaluations a minute, asked for by all of these clients at once."""
    warm = engines[0].capacity() * 2
    for future in submit(engines[0], chosen, [f"{name} warm {n}" for n in range(warm)]):
        future.result()
    begin = time.perf_counter()
    futures: list[Future[Evaluation]] = []
    for number, engine in enumerate(engines):
        marks = [f"{name} client {number} number {n}" for n in range(number, repeats, len(engines))]
        futures += submit(engine, chosen, marks)
    ended = [future.result() for future in futures]
    seconds = time.perf_counter() - begin
    bad = [evaluation for evaluation in ended if evaluation.timing is None]
    if bad:
        raise SystemExit(f"{len(bad)} were not timed: {bad[0].stage} {bad[0].message}")
    return 60 * len(ended) / seconds


def direct(arguments: argparse.Namespace, chosen: Programs, name: str) -> float:
    with open_engine(None, arguments.lanes) as engine:
        return per_minute([engine], chosen, arguments.repeats, name)


def served(arguments: argparse.Namespace, chosen: Programs, name: str) -> float:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        command = [sys.executable, "-c", "from kernel_smith.cli.entry import main; main()", "serve"]
        store = ["--store", f"{folder}/jobs.sqlite", "--lanes", str(arguments.lanes)]
        server = Server([*command, *store])
        server.start()
        stack.callback(server.stop)
        clients = [stack.enter_context(open_engine(server.url)) for _ in range(arguments.clients)]
        return per_minute(clients, chosen, arguments.repeats, name)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--backend", choices=BACKENDS, default="cpp")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--clients", type=int, default=4)
    parser.add_argument("--repeats", type=int, default=8, help="of each program")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    chosen = honest_programs(arguments.backend)
    figures: dict[str, list[float]] = {"direct": [], "served": []}
    for number in range(arguments.rounds):
        for way, measure in (("direct", direct), ("served", served)):
            progress(f"round {number + 1} of {arguments.rounds}: {way}")
            figures[way].append(measure(arguments, chosen, f"{way} {number}"))
    progress("")
    best = {way: max(found) for way, found in figures.items()}
    result = {
        "machine": describe_machine(),
        "settings": {name: str(value) for name, value in vars(arguments).items() if name != "json"},
        "evaluations_per_minute": figures,
        "overhead": 1 - best["served"] / best["direct"],
    }
    print(json.dumps(result, indent=1))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
