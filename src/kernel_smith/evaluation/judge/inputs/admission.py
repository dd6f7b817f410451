"""Can a task tell a right answer from a wrong one? Checked before it is used."""

from __future__ import annotations

import contextlib
import functools
import json
import platform
from collections.abc import Collection
from typing import TYPE_CHECKING, NamedTuple

import torch

import kernel_smith
from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    Result,
    explained,
    secret_seed,
)
from kernel_smith.evaluation.judge.values.accuracy import Expected, computable, expect, is_finite
from kernel_smith.evaluation.judge.values.comparison import compare
from kernel_smith.inline.cache import cache_root, keep_text
from kernel_smith.records import Admission, Workload, content_hash

if TYPE_CHECKING:
    from kernel_smith.evaluation.judge.platform.bench import Bench

_DRAWS = 4
_FEW_ELEMENTS = 8

SENTENCES = {
    Admission.CONSTANT_OUTPUT: "every element of the output is the same",
    Admission.ZERO_OUTPUT: "the output is zero",
    Admission.INPUT_INDEPENDENT: "other inputs give the same output",
    Admission.SEED_INDEPENDENT: "get_inputs returns the same whatever the seed",
    Admission.NON_FINITE: "the output holds NaN or infinity",
    Admission.ACCEPTS_ZEROS: "zeros would be accepted as a right answer, or as half of it",
    Admission.ACCEPTS_MEAN: "the mean of the output would be accepted as a right answer",
    Admission.RANDOM_REFERENCE: "the same inputs give another output (dropout? train mode?)",
    Admission.MUTATES_INPUTS: "the reference changes its inputs",
}


class Found(NamedTuple):
    workload: str
    finding: Admission

    def __str__(self) -> str:
        return f"workload {self.workload}: {self.finding}: {SENTENCES[self.finding]}"


def admit(bench: Bench, also: Collection[Admission]) -> None:
    """Raise `BadInput` where a task has findings that nobody agreed to live with."""
    task = bench.task
    accepted = {*task.admit, *also}
    found = _findings(bench.reference)
    refused = [f for f in found if f.finding not in accepted]
    if refused:
        names = sorted({f.finding.value for f in refused})
        raise BadInput(
            f"{task.path or task.name}: this task cannot discriminate: "
            + "; ".join(str(f) for f in refused),
            hint="mend the inputs or the reference, or accept with "
            + " ".join(f"--admit {name}" for name in names),
        )


def _findings(reference: Reference) -> list[Found]:
    """On all workloads; those of a task that was examined before are known."""
    task = reference.task
    versions = (torch.__version__, kernel_smith.__version__, platform.machine(), reference.device)
    key = content_hash(task.content_hash, *versions)
    path = cache_root() / "admissions" / key[:2] / f"{key}.json"
    with contextlib.suppress(OSError, ValueError, TypeError):
        return [Found(name, Admission(value)) for name, value in json.loads(path.read_text())]
    found = [f for workload in task.workloads for f in examine(reference, workload)]
    keep_text(path, json.dumps([(f.workload, f.finding.value) for f in found]))
    return found


def examine(reference: Reference, workload: Workload) -> list[Found]:
    """All findings about one workload."""
    draws = [reference.draw(workload, secret_seed()) for _ in range(_DRAWS)]
    _demand_one_shape(reference, workload, draws)
    with explained(reference.task, f"workload {workload.name}: Model.forward"):
        answers = [reference.call(workload, inputs) for inputs in draws]
    findings = [
        *_look_at_inputs(reference, workload, draws, answers),
        *_look_at_outputs(answers),
    ]
    if Admission.NON_FINITE not in findings:
        findings += _try_impostors(reference, workload, draws, answers)
    return [Found(workload.name, finding) for finding in dict.fromkeys(findings)]


def _demand_one_shape(reference: Reference, workload: Workload, draws: list[InputSet]) -> None:
    """Memory is shared and calls are compared one to one, so sizes are fixed per workload."""
    shapes = {str([(tuple(t.shape), t.dtype) for t in inputs.tensors]) for inputs in draws}
    if len(shapes) > 1:
        raise BadInput(
            f"{reference.task.path or reference.task.name}: workload {workload.name}: "
            "get_inputs returns tensors of other shapes for another seed",
            hint="give every workload fixed sizes; several sizes are several workloads",
        )


def _look_at_inputs(
    reference: Reference, workload: Workload, draws: list[InputSet], answers: list[Result]
) -> list[Admission]:
    findings = []
    first = draws[0]
    again = reference.call(workload, first)
    if not _equal(again.tensors, answers[0].tensors):
        findings.append(Admission.RANDOM_REFERENCE)
    if draws[0].tensors and all(_equal(d.tensors, first.tensors) for d in draws[1:]):
        findings.append(Admission.SEED_INDEPENDENT)
    elif all(_equal(a.tensors, answers[0].tensors) for a in answers[1:]):
        findings.append(Admission.INPUT_INDEPENDENT)
    if reference.mutates(workload, first):
        findings.append(Admission.MUTATES_INPUTS)
    return findings


def _look_at_outputs(answers: list[Result]) -> list[Admission]:
    tensors = [computable(t) for answer in answers for t in answer.tensors]
    findings = []
    if any(not is_finite(t) for t in tensors):
        findings.append(Admission.NON_FINITE)
    if all(not bool(t.any()) for t in tensors):
        findings.append(Admission.ZERO_OUTPUT)
    elif all(t.numel() > 1 and bool((t == t.flatten()[0]).all()) for t in tensors):
        findings.append(Admission.CONSTANT_OUTPUT)
    return findings


def _try_impostors(
    reference: Reference, workload: Workload, draws: list[InputSet], answers: list[Result]
) -> list[Admission]:
    @functools.cache
    def expected(draw: int) -> Expected:
        return expect(reference, workload, draws[draw])

    def passes(impostor: list[torch.Tensor], draw: int = 0) -> bool:
        found = compare(impostor, expected(draw), reference, workload, draws[draw])
        return found.reason is None

    findings = []
    right = answers[0].tensors
    if passes([torch.zeros_like(t) for t in right]) or passes([_larger_half(t) for t in right]):
        findings.append(Admission.ACCEPTS_ZEROS)
    # The mean of other draws may come close to a single number once, by chance.
    others = [answers[:draw] + answers[draw + 1 :] for draw in (0, 1)]
    if passes([_flat_mean(t) for t in right]) or all(
        passes(_mean_over_draws(rest), draw) for draw, rest in enumerate(others)
    ):
        findings.append(Admission.ACCEPTS_MEAN)
    return findings


def _larger_half(tensor: torch.Tensor) -> torch.Tensor:
    """Zero where the answer is small: a few huge elements must not excuse all the others."""
    if not tensor.is_floating_point() and not tensor.is_complex():
        return torch.zeros_like(tensor)
    sizes = tensor.abs()
    counted = sizes[sizes > 0]
    if counted.numel() < _FEW_ELEMENTS:
        return torch.zeros_like(tensor)
    return torch.where(sizes > counted.median(), tensor, 0)


def _flat_mean(tensor: torch.Tensor) -> torch.Tensor:
    """The mean everywhere; a single element has no other mean than itself, so take none."""
    if tensor.numel() < 2:
        return torch.full_like(tensor, 0)
    return torch.full_like(tensor, _wide(tensor).mean().to(tensor.dtype).item())


def _mean_over_draws(answers: list[Result]) -> list[torch.Tensor]:
    """What someone who knows the distribution but not the inputs would answer."""
    means = []
    for same in zip(*(answer.tensors for answer in answers), strict=True):
        if len({t.shape for t in same}) > 1:
            means.append(torch.zeros_like(same[0]))
        else:
            means.append(torch.stack([_wide(t) for t in same]).mean(0).to(same[0].dtype))
    return means


def _wide(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.to(torch.complex128 if tensor.is_complex() else torch.float64)


def _equal(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(
        a.shape == b.shape and torch.equal(a.nan_to_num(), b.nan_to_num())
        for a, b in zip(left, right, strict=True)
    )
