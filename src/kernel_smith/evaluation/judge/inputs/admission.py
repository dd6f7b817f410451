"""Can a task tell a right answer from a wrong one? Checked before it is used."""

from __future__ import annotations

import contextlib
import functools
import json
import platform
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import torch

import kernel_smith
from kernel_smith.errors import BadInput, NotAdmitted
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.first_look import FirstLook
from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    Result,
    Variation,
    secret_seed,
)
from kernel_smith.evaluation.judge.inputs.rows import PartOfReference, without_oracle
from kernel_smith.evaluation.judge.inputs.task_code import explained
from kernel_smith.evaluation.judge.values.accuracy import (
    Expected,
    computable,
    expect,
    is_finite,
    lost_by_precision,
    relative_error,
)
from kernel_smith.evaluation.judge.values.comparison import is_accepted, plainly_right
from kernel_smith.evaluation.judge.values.pieces import same_bits
from kernel_smith.evaluation.judge.values.variation import (
    flat_mean,
    larger_half,
    mean_over_draws,
    spread_of,
)
from kernel_smith.inline.cache import cache_root, keep_text
from kernel_smith.records import Admission, Workload, content_hash
from kernel_smith.records.admission import FINDINGS, remedy_for

if TYPE_CHECKING:
    from kernel_smith.evaluation.judge.platform.bench import Bench

_DRAWS = 4
_TELLING = 0.25  # of how an output varies: what may be off by more says little
_DRAWS_IN_PART = 3
_FEW_UNITS, _MANY_UNITS = 64.0, 1e6  # in the last place: of single and of double precision
_EXAMINED = 4  # draws, of which the oracle is asked about one at a time
_DRAWS_WHOLE = 2  # of what is large and cannot be looked at in part


class Found(NamedTuple):
    workload: str
    finding: Admission
    detail: str = ""

    def __str__(self) -> str:
        detail = f" ({self.detail})" if self.detail else ""
        return (
            f"workload {self.workload}: {self.finding}: {FINDINGS[self.finding].sentence}{detail}"
        )


class Examined(NamedTuple):
    """What was found about one workload, and how its results are to be compared."""

    found: list[Found]
    variation: Variation | None

    def to_json(self) -> list[Any]:
        found = [(f.workload, f.finding.value, f.detail) for f in self.found]
        return [found, self.variation]

    @classmethod
    def from_json(cls, data: list[Any]) -> Examined:
        found, variation = data
        return cls(
            [Found(name, Admission(value), detail) for name, value, detail in found],
            None if variation is None else Variation(*variation),
        )


def admit(bench: Bench[Any], also: Collection[Admission]) -> None:
    """Raise `NotAdmitted` where a task has findings that nobody agreed to live with."""
    task = bench.task
    accepted = {*task.admit, *also}
    found = _findings(bench)
    refused = [f for f in found if f.finding not in accepted]
    if refused:
        names = sorted({f.finding.value for f in refused})
        raise NotAdmitted(
            f"{task.path or task.name}: this task cannot discriminate: "
            + "; ".join(str(f) for f in refused),
            hint=f"{remedy_for({f.finding for f in refused})}; or accept with "
            + " ".join(f"--admit {name}" for name in names),
        )


def _findings(bench: Bench[Any]) -> list[Found]:
    """On all workloads; those of a task that was examined before are known."""
    reference, task = bench.reference, bench.task
    versions = (torch.__version__, kernel_smith.__version__, platform.machine(), reference.device)
    key = content_hash(task.content_hash, *versions, "by variation")
    path = cache_root() / "admissions" / key[:2] / f"{key}.json"
    examined: dict[str, Examined] = {}
    with contextlib.suppress(OSError, ValueError, TypeError, AttributeError):
        known = json.loads(path.read_text())
        examined = {name: Examined.from_json(data) for name, data in known.items()}
    if not examined:
        for workload in task.workloads:
            look = bench.look(workload)
            examined[workload.name] = examine(reference, workload, bench.platform.budget(), look)
        keep_text(path, json.dumps({name: e.to_json() for name, e in examined.items()}))
    for workload in task.workloads:
        variation = examined[workload.name].variation
        if variation is not None:
            reference.compare_by_variation(workload, variation)
    return [found for each in examined.values() for found in each.found]


def examine(reference: Reference, workload: Workload, budget: Budget, look: FirstLook) -> Examined:
    """All findings about one workload. Of a large one, some rows stand for all where they can."""
    if not look.is_large:
        return _Examiner(reference, workload, _DRAWS).examine()
    if look.rows is not None:
        most = max(1, budget.at_once // _EXAMINED // look.row_bytes)
        part = PartOfReference(reference, look.rows, most)
        return _Examiner(part, workload, _DRAWS_IN_PART).examine()
    return _Examiner(without_oracle(reference, workload), workload, _DRAWS_WHOLE).examine()


class _Examiner:
    """Looks at one workload through a few draws of its inputs."""

    def __init__(self, reference: Reference, workload: Workload, count: int) -> None:
        self._reference = reference
        self._workload = workload
        self._is_large = count < _DRAWS
        self._draws = [reference.draw(workload, secret_seed()) for _ in range(count)]
        self._again: list[torch.Tensor] = []
        self._demand_one_shape("get_inputs returns", self._draws)
        with explained(reference.task, f"workload {workload.name}: Model.forward"):
            self._answers = [reference.call(workload, inputs) for inputs in self._draws]
        self._demand_one_shape("Model.forward returns", self._answers)

    def examine(self) -> Examined:
        findings = [*self._look_at_inputs(), *_look_at_outputs(self._answers)]
        detail, variation = "", None
        if Admission.NON_FINITE not in findings:
            accepted = self._try_impostors()
            if Admission.ACCEPTS_MEAN in accepted and Admission.INPUT_INDEPENDENT not in findings:
                variation, detail = self._vary()
                accepted = self._try_impostors() if variation is not None else accepted
            findings += accepted
            if not self._is_right_again():
                findings.append(Admission.RANDOM_REFERENCE)
        details = {Admission.ACCEPTS_MEAN: detail}
        found = [
            Found(self._workload.name, finding, details.get(finding, ""))
            for finding in dict.fromkeys(findings)
        ]
        return Examined(found, variation)

    def _demand_one_shape(self, who: str, drawn: Sequence[InputSet | Result]) -> None:
        """Memory is shared and calls are compared one to one, so sizes are fixed per workload."""
        task = self._reference.task
        shapes = {str([(tuple(t.shape), t.dtype) for t in d.tensors]) for d in drawn}
        if len(shapes) > 1:
            raise BadInput(
                f"{task.path or task.name}: workload {self._workload.name}: "
                f"{who} tensors of other shapes for another seed",
                hint="give every workload fixed sizes; several sizes are several workloads",
            )

    def _look_at_inputs(self) -> list[Admission]:
        findings = []
        draws, answers = self._draws, self._answers
        if not self._repeats():
            findings.append(Admission.RANDOM_REFERENCE)
        if draws[0].tensors and all(_equal(d.tensors, draws[0].tensors) for d in draws[1:]):
            findings.append(Admission.SEED_INDEPENDENT)
        elif all(_equal(a.tensors, answers[0].tensors) for a in answers[1:]):
            findings.append(Admission.INPUT_INDEPENDENT)
        if self._reference.mutates(self._workload, draws[0]):
            findings.append(Admission.MUTATES_INPUTS)
        return findings

    def _repeats(self) -> bool:
        """Do the same inputs give the same output, but for the order of a sum? The library need not
        keep that from one call to the next; in double precision it hardly matters."""
        reference, workload, inputs = self._reference, self._workload, self._draws[0]
        again = self._again = reference.call(workload, inputs).tensors
        if _equal(again, self._answers[0].tensors):
            return True
        first, units = self._answers[0].tensors, _FEW_UNITS
        if reference.affords_oracle(workload):
            with contextlib.suppress(Exception):  # it may insist on a dtype
                exact = [reference.oracle(workload, inputs).tensors for _ in range(2)]
                first, again, units = *exact, _MANY_UNITS
        return all(
            a.is_floating_point() and relative_error(a, b) <= units * torch.finfo(a.dtype).eps
            for a, b in zip(map(computable, first), map(computable, again), strict=True)
        )

    def _is_right_again(self) -> bool:
        """Would the reference's second answer be accepted?"""
        first = self._answers[0].tensors
        return _equal(self._again, first) or plainly_right(self._again, self._expected(0))

    def _vary(self) -> tuple[Variation | None, str]:
        """Compare outputs by how they vary from now on; or say why that does not help."""
        reference, workload = self._reference, self._workload
        if reference.task.tolerance is not None:
            return None, "by the task's own tolerance"
        spread = spread_of([answer.tensors for answer in self._answers])
        lost = lost_by_precision(reference, workload, self._draws[0], len(spread))
        variation = Variation(spread, lost)
        reference.compare_by_variation(workload, variation)
        allowed = self._expected(0).bounds.atols or []
        pairs = [(a, s) for a, s in zip(allowed, spread, strict=True) if a is not None]
        if pairs and all(atol <= _TELLING * each for atol, each in pairs):
            return variation, ""
        reference.compare_by_size(workload)
        worst = max(pairs, key=lambda pair: pair[0] / max(pair[1], 1e-300), default=None)
        if worst is None:
            return None, ""
        return None, (
            f"it varies by {worst[1]:.2g} around that, and {reference.task.precision} arithmetic "
            f"may be off by {worst[0]:.2g}"
        )

    def _try_impostors(self) -> list[Admission]:
        findings = []
        right = self._answers[0].tensors
        expected = functools.cache(self._expected)
        zeros = [torch.zeros_like(t) for t in right]
        if self._passes(zeros, expected(0), 0) or self._passes(
            [larger_half(t) for t in right], expected(0), 0
        ):
            findings.append(Admission.ACCEPTS_ZEROS)
        if self._mean_passes(expected, None) or any(
            self._mean_passes(expected, output) for output in self._varying_outputs()
        ):
            findings.append(Admission.ACCEPTS_MEAN)
        return findings

    def _varying_outputs(self) -> list[int]:
        """Of several outputs, those that are floating point numbers and depend on the inputs."""
        answers = [answer.tensors for answer in self._answers]
        if len(answers[0]) == 1:
            return []
        return [
            output
            for output, first in enumerate(answers[0])
            if first.is_floating_point()
            and not all(_equal([rest[output]], [first]) for rest in answers[1:])
        ]

    def _mean_passes(self, expected: Callable[[int], Expected], output: int | None) -> bool:
        """Would the mean be accepted, of all outputs or of one among right ones?"""

        def among_right(impostor: list[torch.Tensor], draw: int) -> list[torch.Tensor]:
            right = self._answers[draw].tensors
            if output is None:
                return impostor
            return [*right[:output], impostor[output], *right[output + 1 :]]

        flat = among_right([flat_mean(t) for t in self._answers[0].tensors], 0)
        if self._passes(flat, expected(0), 0):
            return True
        # The mean of other draws may come close to a single number once, by chance.
        for draw in (0, 1):
            others = [a.tensors for i, a in enumerate(self._answers) if i != draw]
            impostor = among_right(mean_over_draws(others), draw)
            if not self._passes(impostor, expected(draw), draw):
                return False
        return True

    def _expected(self, draw: int) -> Expected:
        return expect(self._reference, self._workload, self._draws[draw])

    def _passes(self, impostor: list[torch.Tensor], expected: Expected, draw: int) -> bool:
        if self._is_large:  # the benefit of the doubt takes the oracle many times
            return plainly_right(impostor, expected)
        inputs: InputSet = self._draws[draw]
        return is_accepted(impostor, expected, self._reference, self._workload, inputs)


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


def _equal(left: list[torch.Tensor], right: list[torch.Tensor]) -> bool:
    return len(left) == len(right) and all(
        a.shape == b.shape and same_bits(a, b) for a, b in zip(left, right, strict=True)
    )
