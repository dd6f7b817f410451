"""The programs that the service's load consists of, and how each ends when it is alone."""

from __future__ import annotations

import ast
import time
from dataclasses import dataclass
from pathlib import Path

from common import progress

from kernel_smith.evaluation.engines import LocalPool
from kernel_smith.records import Candidate, Evaluation, JobRequest, Limits, Options, Sampling, Task
from kernel_smith.tasks import find_task

ADVERSARIAL = Path(__file__).parent.parent / "tests" / "adversarial"

# Of fewer rounds the median may be nonsense on a busy machine, and the verdict with it.
SAMPLING = Sampling(target=10.0, unstable_above=1e9, min_rounds=5, max_rounds=6, max_seconds=2.0)
OPTIONS = Options(seeds=1, sampling=SAMPLING)
IMPATIENT = Options(seeds=1, sampling=SAMPLING, limits=Limits(call_seconds=0.1))
UNSCREENED = Options(seeds=1, sampling=SAMPLING, screen=False)

HONEST = '''
import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cmath>
#include <cstdint>
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        float largest = in[0];
        for (int64_t c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
        for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
    }
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
'''
EXPLOITS = (
    "07_forged_verdict",
    "25_patched_comparison",
    "28_returned_input",
    "35_expanded_output",
    "38_decoy_times_zero",
    "42_killing_the_evaluator",
    "53_descriptor_flood",
)


@dataclass(frozen=True)
class Program:
    name: str
    task: Task
    source: str
    weight: float
    options: Options = OPTIONS
    ends: tuple[str, ...] = ()  # reasons beside the one that it ends with when it is alone

    def request(self, mark: str) -> JobRequest:
        """One that differs from all others."""
        candidate = Candidate(source=f"{self.source}\n# {mark}\n", name=self.name)
        return JobRequest(task=self.task, candidate=candidate, options=self.options)


def programs() -> list[Program]:
    tiny = find_task(str(ADVERSARIAL / "tasks" / "tiny_rows.py"))
    small = find_task(str(ADVERSARIAL / "tasks" / "small_softmax.py"))

    def changed(old: str, new: str) -> str:
        assert old in HONEST
        return HONEST.replace(old, new)

    inside = "float largest = in[0];"
    # What is timed takes milliseconds: among shorter times a busy machine finds some that are none.
    work = "for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);"
    often = "for (volatile int again = 0; again < 20; again = again + 1) { sum = 0.0f; "
    patient = changed(work, f"{often}{work} }}")
    found = [
        Program("honest", small, patient, 50),
        Program("wrong", tiny, changed("/= sum", "/= sum + 1"), 12),
        Program("does not compile", tiny, changed(inside, "float largest = in[0]"), 8),
        Program("no Python", tiny, "class ModelNew(:", 4),
        Program("raises", tiny, changed("y = torch.empty_like(x)", "raise KeyError('y')"), 8),
        Program("crashes", tiny, changed(inside, f"{inside} *(volatile int*)8 = 1;"), 8),
        Program(
            "hangs", tiny, changed(inside, f'{inside} for (;;) asm volatile("");'), 1, IMPATIENT
        ),
    ]
    for name in EXPLOITS:
        source = (ADVERSARIAL / "candidates" / f"{name}.py").read_text()
        found.append(Program(name, small, source, 1, UNSCREENED, _named_ends(source)))
    return found


def _named_ends(source: str) -> tuple[str, ...]:
    """How the file itself says that it may end."""
    for node in ast.parse(source).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "EXPECT":
            named = ast.literal_eval(node.value)["unscreened"]
            return (named,) if isinstance(named, str) else tuple(named)
    return ()


def end_of(evaluation: Evaluation) -> str:
    return str(evaluation.reason or evaluation.stage)


@dataclass
class Alone:
    """How a program ends, and how long it takes, when nothing else is going on."""

    ends: set[str]
    seconds: float


def evaluate_alone(chosen: list[Program]) -> dict[str, Alone]:
    found: dict[str, Alone] = {}
    with LocalPool(1) as pool:
        for program in {program.task.name: program for program in chosen}.values():
            request = program.request("to have the task ready")
            pool.submit(request.task, request.candidate, request.options).result()
        for program in chosen:
            progress(f"alone: {program.name}")
            request = program.request("alone")
            begun = time.monotonic()
            future = pool.submit(request.task, request.candidate, request.options)
            ends = {end_of(future.result()), *program.ends}
            found[program.name] = Alone(ends, time.monotonic() - begun)
    return found
