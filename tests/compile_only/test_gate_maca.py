"""Triton for MetaX's GPUs: what must be installed, and compiles with a stand-in for its backend."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from importlib.machinery import ModuleSpec
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.compile_only import compile_texts, find_target, vendor
from kernel_smith.evaluation.compile_only.answer import CompiledKernel
from kernel_smith.evaluation.compile_only.vendor import Kit, require_kit
from kernel_smith.evaluation.compile_only.verdict import fits
from kernel_smith.records import Candidate, CompileReport, Reason, Task
from kernel_smith.records.compile_prose import render_compiled

Compile = Callable[..., CompileReport]

XCORE1000 = find_target("xcore1000")
STAND_IN = Path(__file__).with_name("stand_in_metax.py").read_text()
MXCC = """#!/bin/sh
if [ "$1" = --version ]; then echo mxcc version 1.0.0; exit; fi
if ! grep -q 'one()' kernel.cpp; then echo 'kernel.cpp:1:1: error: no such type'; exit 1; fi
for word; do
    if [ "$previous" = -o ]; then echo library > "$word"; fi
    previous=$word
done
"""
TEXT = "from kernel_smith.inline import maca\n\nkernels = maca('wrong')\n"
KERNELS = """
import sys


@triton.jit
def sum_kernel(x, y, n, B: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, B)
    v = tl.load(x + row * n + c, mask=c < n, other=0.0)
    tl.store(y + row, tl.sum(v, 0))


def launch(x, weight):
    assert os.environ["LD_LIBRARY_PATH"] == os.environ["MACA_PATH"] + "/lib"
    properties = torch.cuda.get_device_properties(0)
    assert torch.cuda.get_device_capability() == (8, 0)
    assert (properties.name, properties.warp_size) == ("xcore1000", 64)
    assert not hasattr(properties, "regs_per_multiprocessor")
    assert sys.modules["triton.backends.nvidia.compiler"].subprocess is subprocess
    y = torch.empty(x.shape[0], device=x.device)
    sum_kernel[(x.shape[0],)](x, y, x.shape[1], B=1024, num_warps=WARPS)
    return y
"""


@pytest.fixture
def sdk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that looks like the MACA SDK, where MACA_PATH says that it is."""
    home = tmp_path / "maca"
    compiler = home / "mxgpu_llvm" / "bin" / "mxcc"
    compiler.parent.mkdir(parents=True)
    compiler.write_text(MXCC)
    compiler.chmod(0o755)
    (home / "lib").mkdir()
    (home / "lib" / "maca_mathlib.bc").write_text("sin and cos")
    monkeypatch.setenv("MACA_PATH", str(home))
    monkeypatch.setenv("LD_LIBRARY_PATH", str(home / "lib"))
    return home


@pytest.fixture
def metax_triton(monkeypatch: pytest.MonkeyPatch) -> None:
    """The stand-in is registered only in the sandbox, where nobody can look beforehand."""
    monkeypatch.setattr(vendor, "_has_backend", lambda name: name == "metax")


def kernel(**changes: Any) -> CompiledKernel:
    usual = {
        **{"name": "k", "line": 3, "constants": {}, "warps": 4, "stages": 3, "registers": 32},
        **{"spill_bytes": 0, "shared_bytes": 0, "compile_seconds": 0.5, "launches": 1},
        "workloads": ("small",),
    }
    return CompiledKernel.model_validate(usual | changes)


def test_occupancy_is_unknown_where_registers_are() -> None:
    assert XCORE1000.stock is None
    assert XCORE1000.occupancy(warps=4, registers=32, shared_bytes=0) is None


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"warps": 16}, True),
        ({"warps": 17}, False),
        ({"shared_bytes": 64 << 10}, True),
        ({"shared_bytes": (64 << 10) + 1}, False),
    ],
    ids=str,
)
def test_blocks_have_1024_threads_and_64_kib_at_most(
    change: dict[str, int], expected: bool
) -> None:
    assert fits(kernel(**change), XCORE1000) is expected


def test_kernels_compile_with_a_stand_in_for_metaxs_backend(
    compile_source: Compile, sdk: Path, metax_triton: None
) -> None:
    report = compile_source(STAND_IN + KERNELS.replace("WARPS", "4"), arch="xcore1000")
    assert report.ok, f"{report.message}\n{report.log}"
    assert (report.target, report.shared_limit) == ("xcore1000", 64 << 10)
    assert [found.workloads for found in report.kernels] == [("small",), ("large",)]
    for found in report.kernels:
        assert (found.name, found.warps, found.launches) == ("sum_kernel", 4, 1)
        assert found.shared_bytes > 0, "the waves of a block exchange their sums"
        assert found.fits
        assert (found.registers, found.spill_bytes, found.occupancy) == (None, None, None)
    text = render_compiled(report)
    assert "ok: compiles for xcore1000: sum_kernel" in text
    assert "unknown registers, unknown spilled, shared memory" in text
    assert "of 64 KiB, 4 warps, 2 stages; 1 launch (small)" in text


def test_waves_have_64_threads(compile_source: Compile, sdk: Path, metax_triton: None) -> None:
    report = compile_source(STAND_IN + KERNELS.replace("WARPS", "32"), arch="xcore1000")
    assert report.reason is Reason.OUT_OF_RESOURCES, report.log
    assert "2048" in report.message


def test_a_triton_without_the_backend_is_told_before_anything_runs(
    compile_source: Compile,
) -> None:
    with pytest.raises(MissingPrerequisite, match="no backend for MACA") as caught:
        compile_source(KERNELS, arch="xcore1000")
    assert "the Triton that MetaX provides" in caught.value.hint


def test_metaxs_triton_need_not_compile_for_others(
    tmp_path: Path, sdk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "triton" / "backends" / "metax").mkdir(parents=True)
    specification = ModuleSpec("triton", None, is_package=True)
    specification.submodule_search_locations = [str(tmp_path / "triton")]
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: specification)
    monkeypatch.setattr(vendor, "entry_points", lambda **asked: ())
    assert f"MACA_PATH={sdk}" in require_kit("maca").variables
    for kind, platform in (("cuda", "CUDA"), ("hip", "ROCm")):
        with pytest.raises(MissingPrerequisite, match=f"no backend for {platform}") as caught:
            require_kit(kind)  # type: ignore[arg-type]
        assert "pip install" in caught.value.hint


def test_another_package_may_register_the_backend(
    tmp_path: Path, sdk: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described = tmp_path / "packages" / "plugin-1.0.dist-info"
    described.mkdir(parents=True)
    (described / "METADATA").write_text("Metadata-Version: 2.1\nName: plugin\nVersion: 1.0\n")
    (described / "entry_points.txt").write_text("[triton.backends]\nmetax = plugin.metax\n")
    monkeypatch.syspath_prepend(described.parent)
    assert require_kit("maca").readable == (sdk / "mxgpu_llvm" / "bin",)
    assert require_kit("cuda") == require_kit("hip") == Kit()


def test_the_sdk_is_found_by_its_variable_and_missed_with_its_remedy(
    sdk: Path, metax_triton: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert require_kit("maca").variables == (f"MACA_PATH={sdk}", f"LD_LIBRARY_PATH={sdk}/lib")
    monkeypatch.delenv("LD_LIBRARY_PATH")
    assert require_kit("maca").variables == (f"MACA_PATH={sdk}",)
    monkeypatch.setenv("MACA_PATH", str(sdk / "gone"))
    with pytest.raises(MissingPrerequisite, match="which is not in") as caught:
        require_kit("maca")
    assert "MACA_PATH" in caught.value.hint


@pytest.mark.parametrize("arch", ["xcore1000", "xcore1002"])
def test_texts_in_maca_have_the_limit_that_they_had(
    gate_task: Task, sdk: Path, monkeypatch: pytest.MonkeyPatch, arch: str
) -> None:
    monkeypatch.delenv("MXCC", raising=False)
    candidate = Candidate(source=TEXT, backend="maca", name="mine.py")
    report = compile_texts(gate_task, candidate, arch, lambda what: None)
    assert (report.target, report.shared_limit) == (arch, 64 << 10)
    assert report.reason is Reason.COMPILER_REJECTED
    assert report.message == "mine.py:3: no such type"
