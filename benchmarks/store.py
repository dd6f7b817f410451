"""How fast is the run store, and how many bytes does a candidate take in it?

Pairs of a proposal and its evaluation are appended one by one, each event in a transaction of its
own: first without prompts, then with prompts of 20 kB of which 16 kB are the same every time. The
programs are a task's starting kernel with changes all over, the evaluations those of a task with
four workloads. Reading every event back, and listing the runs, is timed beside it. The processor
time of an append says what it would take on a quiet machine.

    python benchmarks/store.py [--pairs 2000] [--json results.json]
"""

from __future__ import annotations

import argparse
import json
import random
import re
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path

from common import describe_machine, progress

from kernel_smith.records import (
    Accuracy,
    BaselineSpeedup,
    BaselineTiming,
    Budget,
    Candidate,
    Confinement,
    Conversation,
    Distribution,
    Environment,
    ErrorBin,
    Evaluation,
    Event,
    Interval,
    KernelShare,
    Message,
    Proposal,
    RunConfig,
    RunStarted,
    Stage,
    StepEvaluated,
    StepProposed,
    Task,
    Timing,
    WorkloadTiming,
)
from kernel_smith.store import Store
from kernel_smith.tasks import find_task

TASK = "layer_norm"
PREFIX_BYTES, PROMPT_BYTES = 16_000, 20_000
VOCABULARY = 2000
ENFORCED = tuple(f"rule {number} of the sandbox that is enforced" for number in range(30))


def now() -> datetime:
    return datetime.now(UTC)


def mutate(source: str, chance: random.Random) -> str:
    """Other numbers here and there, and a new helper: what a step of an evolution changes."""
    changed = re.sub(
        r"\b\d+\b", lambda m: m[0] if chance.random() < 0.7 else str(chance.randrange(64)), source
    )
    return f"{changed}\nHELPER = {[chance.randrange(1 << 16) for _ in range(10)]}\n"


def prose(size: int, chance: random.Random) -> str:
    """Words of which some are frequent, as in any text."""
    words = (f"word{int(chance.random() ** 2 * VOCABULARY)}" for _ in range(size // 5))
    return " ".join(words)[:size]


def measure(value: float, chance: random.Random) -> Interval:
    return Interval(value=value, low=value * (1 - chance.random() / 50), high=value * 1.01)


def make_evaluation(task: Task, candidate: Candidate, chance: random.Random) -> Evaluation:
    def seconds() -> Distribution:
        return Distribution(p50=chance.random() * 1e-4 + 1e-6, p99=chance.random() * 1e-3 + 1e-4)

    workloads = tuple(
        WorkloadTiming(
            workload=f"workload{number}",
            weight=1.0,
            candidate=seconds(),
            baselines=tuple(
                BaselineTiming(
                    baseline=name, speedup=measure(1 + chance.random(), chance), seconds=seconds()
                )
                for name in ("eager", "compile")
            ),
            rounds=chance.randrange(10, 40),
            calls=chance.randrange(500, 5000),
            inner_p50=chance.random() * 1e-4,
        )
        for number in range(4)
    )
    overall = BaselineSpeedup(baseline="eager", speedup=measure(1 + chance.random(), chance))
    bins = tuple(ErrorBin(up_to=10.0**e, elements=chance.randrange(10**6)) for e in range(-2, 3))
    return Evaluation(
        task=task.name,
        task_hash=task.content_hash,
        candidate_hash=candidate.content_hash,
        backend="cpp",
        stage=Stage.OK,
        accuracy=Accuracy(
            candidate_error=chance.random() * 1e-6,
            reference_error=1e-7,
            allowed_error=4e-5,
            histogram=bins,
        ),
        timing=Timing(speedups=(overall,), workloads=workloads, cores=(1,)),
        kernels=tuple(
            KernelShare(module=name, origin="library", share=chance.random(), samples=99)
            for name in ("libtorch_cpu.so", "libc.so.6", "libgomp.so.1")
        ),
        confinement=Confinement(enforced=ENFORCED),
        environment=Environment(
            machine="aarch64",
            processor="ARM implementer 0x41 part 0xd0c, 2 cores",
            kernel="Linux 6.18",
            python="3.11.7",
            torch="2.13.0",
            compiler="g++ 12.2.0",
            kernel_smith="0.1.0",
        ),
        seconds={name: chance.random() for name in ("screen", "compile", "load", "timing")},
        created_at=now(),
    )


def make_pairs(task: Task, count: int, *, prompts: bool) -> list[Event]:
    chance = random.Random(0)
    start = Path(task.starts["cpp"]).read_text()
    prefix = prose(PREFIX_BYTES, chance)
    events: list[Event] = []
    parent: str | None = None
    for step in range(count):
        candidate = Candidate(source=mutate(start, chance))
        conversation = None
        if prompts:
            asked = prose(PROMPT_BYTES - PREFIX_BYTES, chance)
            messages = (
                Message(role="system", content=prefix),
                Message(role="user", content=asked),
            )
            answer = f"Here it is.\n{candidate.source}"
            conversation = Conversation(model="a-model", messages=messages, response=answer)
        proposal = Proposal(
            candidate=candidate,
            proposer="model" if prompts else "mutator",
            parents=(parent,) if parent else (),
            summary="unroll the inner loop and keep two accumulators",
            conversation=conversation,
        )
        parent = candidate.content_hash
        events.append(
            StepProposed(step=step, label={"island": step % 3}, proposal=proposal, at=now())
        )
        evaluation = make_evaluation(task, candidate, chance)
        events.append(StepEvaluated(step=step, evaluation=evaluation, seconds=1.2, at=now()))
    return events


def measure_store(path: Path, task: Task, count: int, *, prompts: bool) -> dict[str, float]:
    config = RunConfig(backend="cpp", proposers={}, budget=Budget(evaluations=count))
    events = make_pairs(task, count, prompts=prompts)
    plain = sum(len(event.model_dump_json()) for event in events)
    with Store.open(path, create=True) as store:
        store.append("run", RunStarted(run="run", task=task, config=config, at=now()))
        begin, begin_processor = time.perf_counter(), time.process_time()
        for event in events:
            store.append("run", event)
        appending = time.perf_counter() - begin
        processor = time.process_time() - begin_processor
        begin = time.perf_counter()
        read = sum(1 for _ in store.events("run"))
        reading = time.perf_counter() - begin
        begin = time.perf_counter()
        store.runs()
        listing = time.perf_counter() - begin
    size = path.stat().st_size  # closing moved everything from the log into the file
    return {
        "appends_per_second": round(len(events) / appending),
        "processor_us_per_append": round(processor / len(events) * 1e6),
        "reads_per_second": round(read / reading),
        "list_ms": round(listing * 1e3, 2),
        "bytes_per_candidate": round(size / count),
        "bytes_per_candidate_as_json": round(plain / count),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=2000)
    parser.add_argument("--json", type=Path)
    arguments = parser.parse_args()
    results: dict[str, object] = {"machine": describe_machine()}
    with tempfile.TemporaryDirectory() as folder:
        for name, prompts in (("without prompts", False), ("with prompts of 20 kB", True)):
            progress(name)
            path = Path(folder) / f"{name}.sqlite"
            results[name] = measure_store(path, find_task(TASK), arguments.pairs, prompts=prompts)
    text = json.dumps(results, indent=2)
    print(text)
    if arguments.json:
        arguments.json.write_text(text + "\n")


if __name__ == "__main__":
    main()
