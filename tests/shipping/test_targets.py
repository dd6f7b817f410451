"""A kernel becomes a patch that a project's checkout takes, whose own tests pass there."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from warm_seeds import Seeds

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.records import Accuracy, Candidate, Task, Workload
from kernel_smith.shipping.found import Optimized
from kernel_smith.shipping.targets import TARGETS, find_target
from kernel_smith.shipping.targets.op import op_of
from kernel_smith.shipping.targets.patch import Patch, make_patch, with_text
from kernel_smith.shipping.targets.renaming import renamed
from kernel_smith.shipping.targets.tidying import tidied

TASK = '''
"""Scale rows by a weight. Both have a helper of the same name."""

import torch

TASK = {"family": "normalisation"}


def helper(x):
    return x * 2


class Model(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(width))

    def forward(self, x):
        return helper(x) * self.weight


def get_inputs(rows=4, width=32):
    return [torch.randn(rows, width)]


def get_init_inputs(width=32):
    return [width]
'''
KERNEL = """
import torch
import triton
import triton.language as tl

UNUSED = 1


@triton.jit
def helper(x, weight, y, WIDTH: tl.constexpr):
    # A comment that is longer than some of the projects would like to have it in one line.....
    c = tl.arange(0, WIDTH)
    row = tl.program_id(0) * WIDTH
    tl.store(y + row + c, tl.load(x + row + c) * 2 * tl.load(weight + c))


class ModelNew(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.rand(width))

    def forward(self, x):
        y = torch.empty_like(x)
        helper[(x.shape[0],)](x, self.weight, y, WIDTH=x.shape[1])
        return y
"""
LISTED = "from .able import Able\nfrom .zoo import Zoo\n\n__all__ = [\n    'Able',\n    'Zoo',\n]\n"
CHECKOUTS = {
    "sglang": {
        "python/sglang/kernels/ops/layernorm/__init__.py": (
            '_TRITON_KERNELS = [\n    ("norm", "norm"),\n]\n'
        )
    },
    "lmdeploy": {"lmdeploy/pytorch/kernels/cuda/__init__.py": LISTED},
    "vllm": {"vllm/kernels/triton/__init__.py": ""},
    "flash-linear-attention": {
        "fla/modules/__init__.py": LISTED.replace("from .", "from fla.modules.")
    },
}


def optimized(kernel: str = KERNEL, backend: str = "triton", task: str = TASK) -> Optimized:
    """A kernel that is real, with figures that are not."""
    workloads = (
        Workload(name="small", params={"rows": 4, "width": 32}),
        Workload(name="large", params={"rows": 65536, "width": 64}),
    )
    written = Task(
        name="scaled",
        family="normalisation",
        description="Scale.",
        source=task,
        workloads=workloads,
    )
    candidate = Candidate(backend=backend, source=kernel)
    accuracy = Accuracy(candidate_error=1e-7, reference_error=1e-7, allowed_error=1e-5)
    evaluation = made_up(written, candidate, 2.0).model_copy(
        update={"made_up": False, "accuracy": accuracy}
    )
    return Optimized("run-1", written, candidate, evaluation, "it ended", confirmed=True)


def checkout_of(name: str, folder: Path) -> Path:
    for path, text in CHECKOUTS[name].items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


def patched(name: str, folder: Path, found: Optimized, op: str = "fast_scale") -> Patch:
    """The patch, with its text, applied by git."""
    target = find_target(name)
    patch = make_patch(target, op_of(found, op), folder)
    text = with_text(patch, target, op_of(found, op), found, ())
    subprocess.run(["git", "-C", folder, "apply", "-"], input=text, text=True, check=True)
    return patch


@pytest.mark.parametrize("name", TARGETS)
def test_a_patch_applies_and_names_the_operation(name: str, tmp_path: Path) -> None:
    checkout = checkout_of(name, tmp_path)
    target = find_target(name)
    patch = patched(name, checkout, optimized())
    for path in patch.files:
        text = (checkout / path).read_text()
        compile(text, path, "exec")
        if path.rpartition("/")[2] != "__init__.py":
            assert text.startswith(target.header)
            assert "UNUSED" not in text
    module, test, benchmark = target.paths(op_of(optimized(), "fast_scale"))
    assert patch.files[:3] == [module, test, benchmark]
    for changed in patch.files[3:]:
        assert "FastScale" in (checkout / changed).read_text()
    assert "import triton\n" not in (checkout / module).read_text() or name != "vllm"


def test_the_text_says_how_tests_run_without_a_gpu() -> None:
    op = op_of(optimized(), "fast_scale")
    first = {
        name: find_target(name).commands(op)[0].partition(" #")[0].rstrip() for name in TARGETS
    }
    assert first["sglang"].startswith("TRITON_INTERPRET=1 PYTHONPATH=python python -m pytest test/")
    # The project's own setting for tests waits for a GPU after each of them.
    assert first["flash-linear-attention"].endswith("test_fast_scale.py --noconftest")
    for name in ("vllm", "lmdeploy"):  # which cannot be imported without a GPU
        assert first[name].startswith("python -m pytest tests/")


def test_names_are_listed_in_their_order(tmp_path: Path) -> None:
    checkout = checkout_of("lmdeploy", tmp_path)
    patched("lmdeploy", checkout, optimized())
    text = (checkout / "lmdeploy/pytorch/kernels/cuda/__init__.py").read_text()
    assert text == LISTED.replace(
        "from .zoo", "from .fast_scale import FastScale\nfrom .zoo"
    ).replace("    'Zoo'", "    'FastScale',\n    'Zoo'")


@pytest.mark.slow
def test_shipped_tests_pass_and_notice_a_wrong_kernel(tmp_path: Path, warm_seeds: Seeds) -> None:
    checkout = checkout_of("flash-linear-attention", tmp_path)
    (checkout / "fla/modules/__init__.py").write_text("__all__ = [\n]\n")
    patched("flash-linear-attention", checkout, optimized())
    patched(
        "flash-linear-attention",
        checkout,
        optimized(KERNEL.replace(") * 2 *", ") * 3 *")),
        "wrong_scale",
    )
    arguments = ["-rA", "-p", "no:cacheprovider", "tests"]
    said = warm_seeds.run_pytest(arguments, checkout, TRITON_INTERPRET="1")
    assert said.count("PASSED tests/modules/test_fast_scale.py") == 4, said
    failed = "FAILED tests/modules/test_wrong_scale.py::test_verified_calls_take_the_kernel"
    assert failed in said
    assert said.count("FAILED tests") == 1
    assert said.count("too large for the interpreter") == 2


def test_what_cannot_be_shipped_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no project is called 'pytorch'"):
        find_target("pytorch")
    with pytest.raises(BadInput, match="the kernel is cpp"):
        op_of(optimized(backend="cpp"), "fast_scale")
    with pytest.raises(BadInput, match="is no name of a module"):
        op_of(optimized(), "FastScale")
    nested = TASK.replace("[torch.randn(rows, width)]", "[[torch.randn(rows, width)]]")
    with pytest.raises(BadInput, match="nested or non-contiguous"):
        op_of(optimized(task=nested), "fast_scale")
    op, target = op_of(optimized(), "fast_scale"), find_target("vllm")
    with pytest.raises(BadInput, match="is no checkout of vllm"):
        make_patch(target, op, tmp_path)
    checkout = checkout_of("vllm", tmp_path)
    patched("vllm", checkout, optimized())
    with pytest.raises(BadInput, match=r"fast_scale\.py exists already"):
        make_patch(target, op, checkout)


COMPILED = """
import torch
import triton
import triton.language as tl


@triton.jit
def triton_per_fused__softmax__to_copy_arange_exp_ge_masked_fill_mul_prepare_0(x, y, xnumel):
    xnumel = 8
    rnumel = xnumel
    RBLOCK: tl.constexpr = rnumel
    xmask = tl.full([8], True, tl.int1)[:]
    unknown = helper(x)
    a = 1; b = tl.arange(0, 8)
    if a:
        c = 2
    tl.store(y + b, tl.load(x + b))


def run(x, y):
    triton_per_fused__softmax__to_copy_arange_exp_ge_masked_fill_mul_prepare_0[(1,)](x, y, 8)
"""
TIDY = """
import torch
import triton
import triton.language as tl


@triton.jit
def triton_per_fused__softmax__to_copy_arang_0(x, y, xnumel):
    unknown = helper(x)
    a = 1; b = tl.arange(0, 8)
    if a:
        c = 2
    tl.store(y + b, tl.load(x + b))


def run(x, y):
    triton_per_fused__softmax__to_copy_arang_0[(1,)](x, y, 8)
"""


def test_what_a_compiler_wrote_is_tidied() -> None:
    assert tidied(COMPILED) == TIDY
    kept = "class A:\n    x = 1\n\n\ndef f():\n    class B:\n        y = 1\n    return B\n"
    assert tidied(kept) == kept


NAMES = st.sampled_from(["a", "b", "x", "größe"])


@given(old=NAMES, other=NAMES, new=st.sampled_from(["c", "längere_namen"]))
def test_only_names_are_renamed(old: str, other: str, new: str) -> None:
    text = f"def {old}({other}):  # {old}\n    return {other}.{old}(f'{old}', {old}=1) + {old}(2)\n"
    found = renamed(text, {old: new})
    kept = found.replace(f"def {new}(", f"def {old}(").replace(f"+ {new}(2)", f"+ {old}(2)")
    assert f"def {new}(" in found and f"+ {new}(2)" in found
    assert f".{old}(f'{old}', {old}=1)" in found and f"# {old}" in found
    if old != other:
        assert kept == text
