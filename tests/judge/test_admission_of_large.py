"""Large tasks are examined like small ones; what hardly varies is compared by how it varies."""

from __future__ import annotations

import re
from collections.abc import Callable
from statistics import fmean
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.inputs.admission import Examined, admit, examine
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.first_look import look_at
from kernel_smith.evaluation.judge.inputs.pool import Pool, make_pool
from kernel_smith.evaluation.judge.inputs.reference import Reference, Variation
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.values.mantissa import round_mantissa
from kernel_smith.records import Admission, Reason, Task

WriteTask = Callable[..., Task]

SMALL = Budget(kept=256 << 20, at_once=16 << 20, free=1 << 30)
LARGE = Budget(kept=0, at_once=32 << 10, free=1 << 30)
SCARCE = LARGE._replace(free=0)
BUDGETS = {"small": SMALL, "large": LARGE, "scarce": SCARCE}


def source(
    forward: str, inputs: str = "[torch.randn(64, 32)]", settings: str = "{}", layers: str = "pass"
) -> str:
    return f"""
import torch

TASK = {settings}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {layers}

    def forward(self, x):
        {forward}

def get_inputs():
    return {inputs}
"""


# What is to be found, in rows that stand for all and in wholes.
FLAWED = {
    "constant_rows": ({Admission.CONSTANT_OUTPUT}, source("return (x > 100).float() + 1")),
    "constant_whole": (
        {Admission.CONSTANT_OUTPUT},
        source("return torch.full((64,), float(x[0, 0]))"),
    ),
    "zero_rows": ({Admission.ZERO_OUTPUT}, source("return torch.relu(x - 100)")),
    "zero_whole": ({Admission.ZERO_OUTPUT}, source("return torch.relu(x - x.mean(0) - 100)")),
    "independent_whole": (
        {Admission.INPUT_INDEPENDENT},
        source("return torch.arange(64.0) + 0 * x[0, 0]"),
    ),
    "seed_rows": (
        {Admission.SEED_INDEPENDENT},
        source("return x * 2", "[torch.arange(1.0, 13.0).repeat(8, 1)]"),
    ),
    "seed_whole": ({Admission.SEED_INDEPENDENT}, source("return x.flip(0)", "[torch.arange(12.)]")),
    "infinite_rows": ({Admission.NON_FINITE}, source("return x / 0")),
    "infinite_whole": ({Admission.NON_FINITE}, source("return x.cumsum(0).sqrt()")),
    "zeros_rows": (
        {Admission.ACCEPTS_ZEROS},
        source("return x", settings='{"tolerance": {"rtol": 0, "atol": 100}}'),
    ),
    "zeros_whole": (
        {Admission.ACCEPTS_ZEROS},
        source("return x - x.mean(0)", settings='{"tolerance": {"rtol": 0, "atol": 100}}'),
    ),
    "mean_rows": ({Admission.ACCEPTS_MEAN}, source("return 1 + x * 1e-6")),
    "mean_whole": ({Admission.ACCEPTS_MEAN}, source("return 1 + (x - x.mean(0)) * 1e-6")),
    "random_rows": ({Admission.RANDOM_REFERENCE}, source("return x + torch.randn_like(x)")),
    "random_whole": (
        {Admission.RANDOM_REFERENCE},
        source("return torch.nn.functional.dropout(x - x.mean(0))"),
    ),
    "mutating_rows": ({Admission.MUTATES_INPUTS}, source("return x.mul_(2)")),
    "mutating_whole": ({Admission.MUTATES_INPUTS}, source("return x.sub_(x.mean(0)) * 2")),
}

SOUND = {
    "rows": source("return torch.softmax(x, -1)"),
    "whole": source("return x - x.mean(0)"),
    "integers": source("return x.argmax(-1)"),
    "booleans": source("return x > 0"),
    "whole_integers": source("return x.argsort(0)"),
    "scalar": source("return x.sum()"),
    "several": source("return x, x.argmax(-1), x.sum(-1)"),
    "complex": source("return torch.fft.fft(x)"),
    "half": source("return x.half()"),
    "no_oracle": source("assert x.dtype == torch.float32; return x * 2"),
    "layer": source("return self.f(x)", layers="self.f = torch.nn.Linear(32, 8)"),
}


def examined(task: Task, budget: Budget, reference: Reference | None = None) -> Examined:
    reference, (workload,) = reference or Reference(task), task.workloads
    return examine(reference, workload, budget, look_at(reference, workload, budget))


def findings(task: Task, budget: Budget) -> set[Admission]:
    return {found.finding for found in examined(task, budget).found}


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize(("wanted", "text"), FLAWED.values(), ids=FLAWED)
def test_a_flaw_is_found_whatever_the_size(
    write_task: WriteTask, wanted: set[Admission], text: str, budget: Budget
) -> None:
    found = findings(write_task(text), budget)
    assert wanted <= found
    if Admission.RANDOM_REFERENCE not in wanted:  # what else is found of that is left to chance
        assert found == findings(write_task(text), SMALL)


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("text", SOUND.values(), ids=SOUND)
def test_a_sound_task_has_no_findings_whatever_its_size(
    write_task: WriteTask, text: str, budget: Budget
) -> None:
    assert findings(write_task(text), budget) == set()


# Nearly the same whatever goes in: a network with large biases and small weights.
HARDLY = "return 10 + 2.5e-4 * self.f(x)"
LAYER = "self.f = torch.nn.Linear(32, 24, bias=False)"
TEXTS = {
    "rows": source(HARDLY, layers=LAYER),
    "whole": source(f"x = x - x.mean(0); {HARDLY}", layers=LAYER),
    "two_layers": source(
        "return self.g(torch.relu(self.f(x)))",
        # Weights that are always the same: what varies by luck is not what this is about.
        layers=f"torch.manual_seed(1); {LAYER}; self.g = torch.nn.Linear(24, 16); "
        "self.g.weight.data.mul_(2.7e-4); self.g.bias.data.add_(5)",
    ),
}


def judged(task: Task, budget: Budget) -> Pool:
    """The sets of a task that was admitted."""
    reference, (workload,) = Reference(task), task.workloads
    look = look_at(reference, workload, budget)
    found, variation = examine(reference, workload, budget, look)
    assert found == []
    assert variation is not None
    reference.compare_by_variation(workload, variation)
    return make_pool(reference, workload, 2, budget, look)


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_outputs_that_hardly_vary_are_compared_by_how_they_vary(
    write_task: WriteTask, text: str, budget: Budget
) -> None:
    pool = judged(write_task(text), budget)
    check, reference, workload = pool.author, pool.reference, pool.workload
    inputs = check.draw()
    want = [t.clone() for t in reference.call(workload, inputs).tensors]
    exact = [t.float() for t in reference.oracle(workload, inputs).tensors]
    assert check.compare(want, inputs).reason is None
    assert check.compare(exact, inputs).reason is None
    assert check.agrees(want, inputs)

    def reason(*first: torch.Tensor) -> Reason | None:
        answer = [*first, *want[len(first) :]]
        assert check.agrees(answer, inputs) == (check.compare(answer, inputs).reason is None)
        return check.compare(answer, inputs).reason

    output = want[0]
    spread = float((output - output.mean(0)).std())
    assert reason(torch.full_like(output, float(output.mean()))) is not None
    assert reason(output.mean(0, keepdim=True).expand_as(output).clone()) is not None
    assert reason(torch.zeros_like(output)) is not None
    assert reason(output.flip(0)) is not None
    assert reason(output.roll(1, -1)) is not None
    assert reason(output + 0.5 * spread) is not None
    one = output.clone()
    one[-1, -1] += 2 * spread
    assert reason(one) is not None
    assert reason(output * (1 + 1e-7)) is None, "a rounding error"


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_timed_calls_are_compared_by_how_they_vary(write_task: WriteTask, budget: Budget) -> None:
    pool = judged(write_task(TEXTS["rows"]), budget)
    inputs = next(iter(pool.timing_sets()))
    want = pool.reference.call(pool.workload, inputs).tensors
    assert pool.check(inputs).compare_timed([want[0].clone()], want, inputs).reason is None
    flat = torch.full_like(want[0], float(want[0].mean()))
    assert pool.check(inputs).compare_timed([flat], want, inputs).reason is not None


# Of a large whole there are two draws: what is admitted when it is small must not be refused then.
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("text", [TEXTS["rows"], TEXTS["whole"]], ids=["rows", "whole"])
def test_how_far_an_output_varies_does_not_depend_on_how_often_it_was_drawn(
    write_task: WriteTask, text: str, budget: Budget
) -> None:
    task = write_task(text)
    reference, (workload,) = Reference(task), task.workloads
    answer = reference.call(workload, reference.draw(workload, 1)).tensors[0].double()
    # A few hundred elements tell a spread to a tenth; eight examinations tell a bias of a tenth.
    spreads = []
    for _ in range(8):
        variation = examined(task, budget).variation
        assert variation is not None
        spreads.append(variation.spread[0])
    assert fmean(spreads) == pytest.approx(float(answer.std()), rel=0.15)


# One output that varies must not excuse its neighbour, for which somebody answers 10.
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_an_output_that_hardly_varies_is_noticed_beside_one_that_does(
    write_task: WriteTask, budget: Budget
) -> None:
    task = write_task(source("y = self.f(x); return 10 + 2.5e-4 * y, y", layers=LAYER))
    reference, (workload,) = Reference(task), task.workloads
    look = look_at(reference, workload, budget)
    found, variation = examine(reference, workload, budget, look)
    if variation is not None:
        reference.compare_by_variation(workload, variation)
    pool = make_pool(reference, workload, 2, budget, look)
    inputs = pool.author.draw()
    hardly, varied = reference.call(workload, inputs).tensors
    flat = torch.full_like(hardly, 10.0)
    assert found or pool.author.compare([flat, varied], inputs).reason is not None


# What is nearly always the same number seems to be accepted whatever is answered.
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
def test_whole_numbers_that_hardly_vary_are_compared_exactly(
    write_task: WriteTask, budget: Budget
) -> None:
    task = write_task(source("return 3 + (x > 2).long()"))
    reference, (workload,) = Reference(task), task.workloads
    look = look_at(reference, workload, budget)
    reference.compare_by_variation(workload, Variation([0.0], [0.0]))
    pool = make_pool(reference, workload, 2, budget, look)
    inputs = pool.author.draw()
    (want,) = reference.call(workload, inputs).tensors
    assert pool.author.compare([want.clone()], inputs).reason is None
    want[-1, -1] += 1
    assert pool.author.compare([want], inputs).reason is not None


def test_an_allowed_precision_is_allowed_for(write_task: WriteTask) -> None:
    """What coarse inputs do to how the output varies, not to its size."""
    settings = '{"precision": "tf32"}'
    for budget in BUDGETS.values():
        pool = judged(write_task(source(HARDLY, layers=LAYER, settings=settings)), budget)
        inputs = pool.author.draw()
        weight = pool.reference.model(pool.workload).f.weight.detach()
        x, w = (round_mantissa(t, 10) for t in (inputs.tensors[0], weight))
        got = 10 + 2.5e-4 * (x @ w.t())
        assert pool.author.compare([got], inputs).reason is None
        flat = torch.full_like(got, float(got.mean()))
        assert pool.author.compare([flat], inputs).reason is not None


@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("text", [FLAWED["mean_rows"][1], FLAWED["mean_whole"][1]])
def test_what_no_tolerance_can_tell_apart_is_refused_with_the_figures(
    write_task: WriteTask,
    text: str,
    budget: Budget,
    tmp_path_factory: pytest.TempPathFactory,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KERNEL_SMITH_CACHE", str(tmp_path_factory.mktemp("cache")))
    task = write_task(text)
    reference = Reference(task)
    bench: Any = SimpleNamespace(
        task=task,
        reference=reference,
        platform=SimpleNamespace(budget=lambda: budget),
        look=lambda workload: look_at(reference, workload, budget),
    )
    with pytest.raises(BadInput) as caught:
        admit(cast(Bench[Any], bench), ())
    assert "accepts-mean" in caught.value.what
    figures = re.search(
        r"it varies by (\S+) around that, and strict arithmetic may be off by (\S+?)\)",
        caught.value.what,
    )
    assert figures is not None
    spread, off = map(float, figures.groups())
    assert 5e-7 < spread < 1.2e-6
    assert off > spread / 4
    assert reference.variation(task.workloads[0]) is None
    assert "--admit accepts-mean" in caught.value.hint


def test_an_own_tolerance_is_not_replaced(write_task: WriteTask) -> None:
    settings = '{"tolerance": {"rtol": 1e-2, "atol": 1e-2}}'
    found, variation = examined(write_task(source(HARDLY, layers=LAYER, settings=settings)), LARGE)
    assert variation is None
    assert [(f.finding, f.detail) for f in found] == [
        (Admission.ACCEPTS_MEAN, "by the task's own tolerance")
    ]


def test_what_was_found_survives_being_written_down(write_task: WriteTask) -> None:
    for text in (TEXTS["two_layers"], FLAWED["mean_rows"][1], SOUND["rows"]):
        result = examined(write_task(text), LARGE)
        assert Examined.from_json(result.to_json()) == result
