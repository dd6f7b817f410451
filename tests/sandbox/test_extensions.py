"""Functions of extensions in a process whose kernels are to do nothing."""

from __future__ import annotations

import types

import torch

from kernel_smith.evaluation.sandbox.extensions import _WithoutEffect

KERNELS = types.SimpleNamespace(
    limit=3,
    added=lambda x, y: (x + y, float(x.sum())),
    fill=lambda rows, value: [row.fill_(value) for row in rows],
    poke=lambda address: (_ for _ in ()).throw(AssertionError("was called")),
)


def without_effect() -> _WithoutEffect:
    module = types.ModuleType("kernels")
    vars(module).update(vars(KERNELS))
    return _WithoutEffect(module)


def test_results_are_zero_and_of_the_right_shape() -> None:
    result, total = without_effect().added(torch.ones(2, 3), torch.ones(2, 3))
    assert torch.equal(result, torch.zeros(2, 3)) and total == 0.0


def test_arguments_are_as_before() -> None:
    rows = [torch.ones(4), torch.ones(2)]
    without_effect().fill(rows, value=5.0)
    assert all(torch.equal(row, torch.ones_like(row)) for row in rows)


def test_what_works_on_addresses_is_not_called() -> None:
    assert without_effect().poke(4096) is None
    assert without_effect().limit == 3
