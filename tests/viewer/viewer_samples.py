"""A made-up run with something for every view: gains, failures, a model, a GPU, several islands."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import (
    BaselineSpeedup,
    Beside,
    Budget,
    Candidate,
    Ceilings,
    ConfirmationBegun,
    Conversation,
    Device,
    DeviceKernel,
    Evaluation,
    Event,
    Interval,
    KernelShare,
    Message,
    Proposal,
    Reason,
    Remeasured,
    Roofline,
    RunConfig,
    RunEnded,
    RunStarted,
    StepDropped,
    StepEvaluated,
    StepProposed,
    Task,
    Usage,
    Workload,
    WorstElement,
)
from kernel_smith.store import Store

BEGIN = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
RUN = "scale-20260102-030405-0000"
HOSTILE = 'two loops </script><img src=x onerror="alert(1)"> in one'
"""A summary that would do harm in a page that took it for markup."""
TASK = Task(
    name="scale",
    source="class Model: ...",
    description="Multiplies every element.",
    workloads=(Workload(name="small"), Workload(name="large", weight=2.0)),
)
CONFIG = RunConfig(
    backend="cuda",
    proposers={"tuner": 1.0, "mutator": 1.0, "model": 1.0},
    budget=Budget(evaluations=40, dollars=2.0),
    islands=2,
)
DEVICE = Device(
    name="A made-up GPU",
    capability="9.0",
    memory_bytes=1 << 36,
    multiprocessors=100,
    l2_bytes=1 << 25,
    driver="1",
    runtime="12.8",
)
CEILINGS = Ceilings(
    device=DEVICE,
    copy_bytes_per_second=4e12,
    flops_per_second={"float32": 5e13, "bfloat16": 7e14},
    launch_seconds=2e-6,
    measured_at=BEGIN,
)
SOURCE = '''import torch

from kernel_smith.inline import cuda

# number {number}
kernels = cuda(r"""
#include <cstdint>
extern "C" __global__ void scale(const float* x, float* y, int64_t n) {{
    int64_t i = blockIdx.x * {number} + threadIdx.x;  // one per thread
    if (i < n) y[i] = 2.0f * x[i];
}}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return kernels.scale(x)
'''


def candidate(number: int) -> Candidate:
    return Candidate(backend="cuda", source=SOURCE.format(number=number), name="candidate.py")


def at(seconds: float) -> datetime:
    return BEGIN + timedelta(seconds=seconds)


def evaluation(program: Candidate, outcome: float | Reason, **more: Any) -> Evaluation:
    """As of a GPU, with all that it says of one."""
    made = made_up(TASK, program, outcome, half_width=0.03, baselines=("eager", "compile"))
    if made.timing is None:
        worst = WorstElement(
            workload="large",
            inputs="huge",
            output=0,
            index=(3, 17),
            got="nan",
            expected=1.5,
            allowed=1e-5,
        )
        return made.model_copy(update={"worst": worst} | more)
    speed = made.timing.speedup.value
    shares = {
        "kernels": (KernelShare(module="kernels.so", origin="authored", share=0.9, samples=90),),
        "device_kernels": (
            DeviceKernel(
                name="scale", origin="authored", launches=1, share=1.0, seconds=1e-5, registers=32
            ),
        ),
        "rooflines": tuple(
            Roofline(
                workload=workload.name,
                bytes=1 << 24,
                flops=flops,
                precision="float32",
                launches=1,
                seconds=1e-5 / speed,
                bytes_per_second=1e12 * speed,
                flops_per_second=flops * 1e5 * speed,
                bound="memory",
                share=0.25 * speed,
                floor_seconds=1e-6,
            )
            for workload, flops in zip(TASK.workloads, (0, 1 << 26), strict=True)
        ),
    }
    about = {"device": DEVICE, "ceilings": CEILINGS, "made_up": False}
    return made.model_copy(update=about | shares | more)


def conversation(number: int) -> Conversation:
    return Conversation(
        model="a-model",
        messages=(
            Message(role="system", content="You write kernels."),
            Message(role="user", content=f"Make program {number} faster."),
        ),
        response=f"Use {number} threads.",
        usage=Usage(prompt_tokens=900, completion_tokens=100, dollars=0.01, requests=1),
    )


def events(run: str = RUN, steps: int = 40, seed: int = 0) -> Iterator[Event]:
    """A run that gets faster now and then, and is confirmed in the end."""
    chance = random.Random(seed)
    yield RunStarted(run=run, task=TASK, config=CONFIG, at=BEGIN)
    known: list[tuple[Candidate, float]] = []
    best: tuple[Candidate, float] | None = None
    for step in range(steps):
        program = candidate(1000 * seed + step)
        parent, speed = chance.choice(known[-8:]) if known else (None, 0.9)
        who = chance.choice(("tuner", "mutator", "model")) if known else "start"
        proposal = Proposal(
            candidate=program,
            proposer=who,
            parents=(parent.content_hash,) if parent else (),
            summary=HOSTILE if step == 5 else f"change number {step}",
            conversation=conversation(step) if who == "model" else None,
        )
        yield StepProposed(
            step=step, label={"island": step % 2}, proposal=proposal, at=at(3 * step)
        )
        speed *= chance.uniform(0.9, 1.2)
        broken = step in (2, 7) or (step > 8 and chance.random() < 0.2)
        reason = Reason.WRONG_VALUES if step % 2 else Reason.COMPILER_REJECTED
        outcome = evaluation(program, reason if broken else speed)
        yield StepEvaluated(step=step, evaluation=outcome, seconds=2.5, at=at(3 * step + 2.5))
        if broken:
            continue
        known.append((program, speed))
        if best is None or speed * 0.97 > best[1] * 0.97:
            if best is not None:
                yield _again(program, speed, at(3 * step + 2.9), before=best)
            best = (program, speed)
    yield StepDropped(step=steps, proposer="tuner", why="the program is known", at=at(3 * steps))
    if best is not None:
        yield ConfirmationBegun(candidate=best[0].content_hash, at=at(3 * steps + 1))
        yield _again(*best, at(3 * steps + 9), confirming=True)
        yield RunEnded(why="the budget is spent", best=best[0].content_hash, at=at(3 * steps + 10))


def _again(
    program: Candidate,
    speed: float,
    when: datetime,
    *,
    confirming: bool = False,
    before: tuple[Candidate, float] | None = None,
) -> Remeasured:
    judged = evaluation(program, speed)
    if before is not None:
        gain = speed / before[1]
        beside = Beside(
            candidate_hash=before[0].content_hash,
            gain=Interval(value=gain, low=gain / 1.02, high=gain * 1.02),
        )
        judged = judged.model_copy(update={"beside": beside})
    if confirming:
        assert judged.timing is not None
        compiled = Interval(value=speed * 0.8, low=speed * 0.78, high=speed * 0.82)
        speedups = (
            judged.timing.speedups[0],
            BaselineSpeedup(baseline="compile", speedup=compiled),
        )
        timing = judged.timing.model_copy(update={"speedups": speedups})
        judged = judged.model_copy(update={"timing": timing})
    return Remeasured(
        candidate=program.content_hash,
        evaluation=judged,
        confirming=confirming,
        seconds=0.0 if confirming else 0.3,
        at=when,
    )


def fill(path: Path, *runs: str) -> None:
    with Store.open(path, create=True) as store:
        for number, run in enumerate(runs or (RUN,)):
            for event in events(run, seed=number):
                store.append(run, event)
