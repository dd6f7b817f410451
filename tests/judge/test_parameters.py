"""Parameters that constructors fill with one value are judged with others."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.first_look import look_at
from kernel_smith.evaluation.judge.inputs.parameters import unsettle
from kernel_smith.evaluation.judge.inputs.reference import Reference
from kernel_smith.records import Task

WriteTask = Callable[..., Task]
BUDGET = Budget(kept=256 << 20, at_once=16 << 20, free=1 << 30)


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.linear = torch.nn.Linear(8, 6)
        torch.nn.init.zeros_(self.linear.bias)
        self.up = torch.nn.Linear(6, 8, bias=False)
        torch.nn.init.zeros_(self.up.weight)
        self.norm = torch.nn.BatchNorm1d(8)
        self.scale = torch.nn.Parameter(torch.full((8,), 1e-6))
        self.mask = torch.nn.Parameter(torch.full((4,), float("-inf")))
        self.register_buffer("constant", torch.ones(3))


def test_what_is_constant_is_drawn_and_nothing_else() -> None:
    model = Model()
    before = {name: tensor.clone() for name, tensor in model.state_dict().items()}
    names = ["linear.bias", "up.weight", "norm.weight", "norm.bias", "scale"]
    statistics = ["norm.running_mean", "norm.running_var"]
    assert sorted(unsettle(model, 1)) == sorted([*names, *statistics])
    after = model.state_dict()
    for name, tensor in before.items():
        assert torch.equal(tensor, after[name]) == (name not in (*names, *statistics)), name
    assert (model.norm.running_var > 0.4).all()
    assert float(model.scale.detach().abs().max()) > 0.05, "what a layer adds can be seen"
    assert unsettle(model, 1) == []


def test_another_seed_draws_others() -> None:
    models = [Model() for _ in range(3)]
    for model, seed in zip(models, (1, 1, 2), strict=True):
        unsettle(model, seed)
    assert torch.equal(models[0].up.weight, models[1].up.weight)
    assert not torch.equal(models[0].up.weight, models[2].up.weight)


def reference_of(write_task: WriteTask, layers: str, forward: str) -> Reference:
    return Reference(
        write_task(
            f"""
import torch

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        {layers}

    def forward(self, x):
        {forward}

def get_inputs():
    return [torch.randn(4, 8)]
"""
        )
    )


def test_the_oracle_and_the_reference_have_the_same_ones(write_task: WriteTask) -> None:
    reference = reference_of(write_task, "self.f = torch.nn.LayerNorm(8)", "return self.f(x)")
    (workload,) = reference.task.workloads
    look_at(reference, workload, BUDGET)
    assert reference.unsettled(workload) == ["f.weight", "f.bias"]
    inputs = reference.draw(workload, 1)
    plain = torch.nn.functional.layer_norm(inputs.tensors[0], (8,))
    (answer,) = reference.call(workload, inputs).tensors
    (exact,) = reference.oracle(workload, inputs).tensors
    assert not torch.allclose(answer, plain, atol=1e-2)
    assert torch.allclose(answer.double(), exact, atol=1e-5)


@pytest.mark.parametrize(
    "forward",
    [
        "assert (self.s == 1).all(); return x * self.s",
        "return torch.where((self.s == 1).all(), x * self.s, float('nan'))",
    ],
)
def test_a_reference_that_can_do_with_no_others_keeps_its_own(
    write_task: WriteTask, forward: str
) -> None:
    reference = reference_of(write_task, "self.s = torch.nn.Parameter(torch.ones(8))", forward)
    (workload,) = reference.task.workloads
    look_at(reference, workload, BUDGET)
    assert reference.unsettled(workload) == []
    assert (reference.model(workload).s == 1).all()
