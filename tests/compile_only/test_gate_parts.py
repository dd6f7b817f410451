"""Targets, the reading of compilers' words, inputs without values, and the missing compiler."""

from __future__ import annotations

import importlib.metadata
import importlib.util
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.evaluation.backends.triton import require_triton
from kernel_smith.evaluation.compile_only import compile_only, find_target
from kernel_smith.evaluation.compile_only.inside.inputs import draw_init_inputs, draw_inputs
from kernel_smith.evaluation.compile_only.inside.measure import (
    Usage,
    ptxas_errors,
    read_amdgcn,
    read_ptxas_log,
)
from kernel_smith.evaluation.compile_only.inside.pretend import PretendDevice
from kernel_smith.evaluation.compile_only.targets import TARGETS
from kernel_smith.records import Candidate, Task

PTXAS = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'k' for 'sm_90a'
ptxas info    : Function properties for k
    136 bytes stack frame, 132 bytes spill stores, 140 bytes spill loads
ptxas info    : Used 255 registers, used 1 barriers, 136 bytes cumulative stack size
"""
AMDGCN = """\
    .sgpr_count:     18
    .sgpr_spill_count: 4
    .vgpr_count:     64
    .vgpr_spill_count: 7
    .wavefront_size: 64
"""


def test_unknown_targets_are_refused_with_the_names_that_exist() -> None:
    with pytest.raises(BadInput) as caught:
        find_target("sm_75")
    assert all(name in caught.value.hint for name in TARGETS)
    assert [find_target(name).name for name in TARGETS] == list(TARGETS)


@pytest.mark.parametrize(
    ("target", "warps", "registers", "shared", "expected"),
    [
        ("sm_90", 4, 32, 0, 1.0),
        ("sm_90", 4, 128, 0, 0.25),
        ("sm_90", 4, 33, 0, 0.75),  # 40 registers: 12 blocks
        ("sm_90", 8, 32, 227 << 10, 0.125),
        ("sm_80", 8, 32, 81 << 10, 0.25),
        ("gfx942", 4, 64, 0, 1.0),
        ("gfx942", 4, 512, 0, 0.125),
        ("gfx90a", 4, 64, 32 << 10, 0.25),
    ],
)
def test_occupancy_follows_the_scarcest_resource(
    target: str, warps: int, registers: int, shared: int, expected: float
) -> None:
    assert find_target(target).occupancy(warps, registers, shared) == expected


def test_registers_and_spills_are_read_from_compilers() -> None:
    assert read_ptxas_log(PTXAS) == Usage(registers=255, spill_bytes=132)
    assert read_amdgcn(AMDGCN) == Usage(registers=64, spill_bytes=28)
    assert read_ptxas_log("") == read_amdgcn("") == Usage(None, None)


def test_the_assemblers_errors_are_singled_out() -> None:
    text = (
        "Internal Triton PTX codegen error\n`ptxas` stderr:\n"
        "ptxas /tmp/a.ptx, line 43; error   : Not a name of any known instruction: 'bogus'\n"
        "ptxas /tmp/a.ptx, line 44; error   : Not a name of any known instruction: 'bogus'\n"
        "ptxas fatal   : Ptx assembly aborted due to errors\n"
    )
    assert ptxas_errors(text) == "ptxas: Not a name of any known instruction: 'bogus'"
    assert ptxas_errors("anything else") == ""


def make_task(draw: Any) -> tuple[Any, list[str]]:
    devices: list[str] = []

    def get_inputs(n: int) -> list[Any]:
        made = draw(n)
        devices.append(made[0].device.type)
        return list(made)

    return SimpleNamespace(get_inputs=get_inputs), devices


def test_large_inputs_are_never_drawn() -> None:
    task, devices = make_task(lambda n: [torch.randn(n, 4).t(), {"i": (torch.randint(9, (n,)), 3)}])
    large, nested = draw_inputs(task, {"n": 1 << 23})
    assert devices == ["meta"]
    assert (large.shape, large.stride(), large.device.type) == ((4, 1 << 23), (1, 4), "cpu")
    indices, three = nested["i"]
    assert (indices.dtype, int(indices.max()), three) == (torch.int64, 0, 3)


def test_small_inputs_have_their_own_values() -> None:
    task, devices = make_task(lambda n: [torch.arange(n)])
    (small,) = draw_inputs(task, {"n": 5})
    assert small.tolist() == [0, 1, 2, 3, 4]
    assert devices == ["meta", "cpu"]


def test_inputs_that_need_values_are_drawn() -> None:
    task, devices = make_task(lambda n: [torch.full((int(torch.tensor(n).item()),), 2.0)])
    (values,) = draw_inputs(task, {"n": 3})
    assert values.tolist() == [2.0, 2.0, 2.0]
    assert devices == ["cpu"]


def test_init_inputs_get_the_parameters_that_they_name() -> None:
    task = SimpleNamespace(get_init_inputs=lambda width: [width])
    assert draw_init_inputs(task, {"rows": 3, "width": 4}) == [4]
    assert draw_init_inputs(SimpleNamespace(), {"rows": 3}) == []


def test_programs_for_a_gpu_find_themselves_on_one() -> None:
    x = torch.ones(3)
    with PretendDevice():
        made = torch.zeros(3, device="cuda:0") + x.cuda() + x.to("cuda") + x.to(device=x.device)
        half = x.to("cuda", torch.float16)
        module = torch.nn.Linear(3, 2).to("cuda").cuda()
        out = module(torch.empty(1, 3, device=x.device))
        assert x.is_cuda and not x.is_cpu and x.device.type == "cuda" and x.get_device() == 0
    assert made.tolist() == [3.0, 3.0, 3.0]
    assert (made.device.type, half.device.type, out.device.type) == ("cpu", "cpu", "cpu")
    assert half.dtype == torch.float16


def test_without_triton_the_remedy_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(MissingPrerequisite) as caught:
        compile_only(Task(name="t", source=""), Candidate(source=""), find_target("sm_90"))
    assert "pip install" in caught.value.hint


@pytest.mark.parametrize("found", ["2.1.0", "3.1.0+metax3.5.3.9"])
def test_a_triton_that_is_too_old_is_not_the_candidates_fault(
    monkeypatch: pytest.MonkeyPatch, found: str
) -> None:
    monkeypatch.setattr(importlib.metadata, "version", lambda name: found)
    with pytest.raises(MissingPrerequisite, match=r"too old, expected 3\.2") as caught:
        require_triton()
    assert "triton>=3.2" in caught.value.hint


def test_a_triton_in_a_package_of_another_name_will_do(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(name: str) -> str:
        raise importlib.metadata.PackageNotFoundError(name)

    monkeypatch.setattr(importlib.metadata, "version", unknown)
    assert require_triton() == "of unknown version"
