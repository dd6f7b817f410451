"""A saved kernel: read back, and where kernel-smith is not installed."""

from __future__ import annotations

import importlib
import importlib.metadata
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest
import torch
from shipping_samples import WIDTH, RMSNorm

import kernel_smith
from kernel_smith.errors import BadInput
from kernel_smith.shipping import standalone
from kernel_smith.shipping.folder import own_imports, save
from kernel_smith.shipping.runtime.replacement import Replacement

ALONE = """
import importlib.util, pickle, sys

sys.path += [{libraries!r}, {folder!r}]
assert importlib.util.find_spec("kernel_smith") is None

import torch
import fast_norm

with torch.no_grad():
    fast_norm.module()(torch.zeros(8, 64))
assert "torch._dynamo" not in sys.modules, "who does not compile does not wait for the compiler"
exported = torch.export.load({exported!r})
fast = fast_norm.module()
x = torch.randn(8, 64)
with torch.no_grad():
    expected = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6) * fast.weight
    torch.testing.assert_close(fast(x), expected)
    torch.testing.assert_close(fast(x[:3]), expected[:3])
    torch.testing.assert_close(exported.module()(x), expected)
    torch.testing.assert_close(pickle.loads(pickle.dumps(fast))(x), expected)
    try:
        fast_norm.replacement.kernel_of_thread().forward(x.half())
    except TypeError as error:
        assert "got one of float16" in str(error)
fast(x).sum().backward()
model = torch.nn.Sequential(torch.nn.Linear(64, 64), type(fast).replaced_class())
assert fast_norm.patch(model, where=type(fast).replaced_class) == ["1"]
print(float(fast.weight.detach()[0]), fast.weight.grad is not None, fast.counts)
"""


@pytest.fixture(scope="module")
def weights() -> dict[str, torch.Tensor]:
    return {"weight": torch.full((WIDTH,), 1.25)}


@pytest.fixture(scope="module")
def folder(
    norm_kernel: Replacement,
    weights: dict[str, torch.Tensor],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    return save(norm_kernel.spec, tmp_path_factory.mktemp("saved") / "fast_norm", weights)


def test_a_folder_is_read_back(folder: Path, norm_kernel: Replacement) -> None:
    found = kernel_smith.load(folder)
    assert found.spec == norm_kernel.spec
    fast = found.module()
    assert torch.equal(fast.weight, torch.full((WIDTH,), 1.25))
    mine = RMSNorm()
    x = torch.randn(8, WIDTH)
    with torch.no_grad():
        torch.testing.assert_close(found.module(mine)(x), mine(x))
    assert found.patch(torch.nn.Sequential(RMSNorm())) == ["0"]


def test_saving_again_replaces_the_folder(norm_kernel: Replacement, tmp_path: Path) -> None:
    path = save(norm_kernel.spec, tmp_path / "norm")
    (path / "left_over.txt").touch()
    assert save(norm_kernel.spec, tmp_path / "norm") == path
    assert not (path / "left_over.txt").exists()
    assert [each.name for each in tmp_path.iterdir()] == ["norm"]


def test_folders_that_are_something_else_are_refused(
    norm_kernel: Replacement, tmp_path: Path
) -> None:
    (tmp_path / "mine").mkdir()
    with pytest.raises(BadInput, match="exists, and is no saved kernel"):
        save(norm_kernel.spec, tmp_path / "mine")
    with pytest.raises(BadInput, match="no name that Python can import"):
        save(norm_kernel.spec, tmp_path / "my-norm")
    with pytest.raises(BadInput, match="no saved kernel"):
        kernel_smith.load(tmp_path / "mine")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("from kernel_smith.inline import cpp", "from .inline import cpp"),
        (
            "from kernel_smith.inline import (\n    cpp as c,\n    cuda\n)",
            "from .inline import cpp as c, cuda",
        ),
        ("import kernel_smith.inline as k", "from . import inline as k"),
        ("from kernel_smith import inline", "from . import inline"),
        ("import torch", "import torch"),
    ],
)
def test_kernels_import_what_compiles_from_beside_them(written: str, expected: str) -> None:
    assert own_imports(written + "\nx = 1\n") == expected + "\nx = 1\n"


def test_kernels_that_import_other_parts_are_refused() -> None:
    with pytest.raises(BadInput, match=r"line 1 of the kernel imports"):
        own_imports("from kernel_smith.records import Task\n")


@pytest.mark.slow
def test_a_folder_compiles_anew_for_another_processor(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A home may be shared by machines of which one knows SVE; the other would die of it."""
    monkeypatch.syspath_prepend(folder.parent)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    inline = importlib.import_module("fast_norm.inline")
    there = importlib.import_module("fast_norm.inline.processor")
    libraries = set()
    for features in ("fp asimd", "fp asimd sve", "fp asimd"):
        (tmp_path / "cpuinfo").write_text(f"processor : 0\nFeatures : {features}\n")
        monkeypatch.setattr(there, "CPUINFO", tmp_path / "cpuinfo")
        there.processor.cache_clear()
        libraries.add(inline._built("cpp", 'extern "C" int one() { return 1; }', ()))
    assert len(libraries) == 2


@pytest.mark.slow
def test_for_a_user_without_a_home_a_kernel_is_compiled_for_the_process_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 987_654)
    folder = standalone._cache_folder()
    try:
        assert folder.is_dir() and folder.name.startswith("kernel-smith-")
    finally:
        folder.rmdir()
        standalone._own_folder.cache_clear()


def test_a_folder_runs_where_only_torch_is_installed(folder: Path, tmp_path: Path) -> None:
    fast = kernel_smith.load(folder).module().requires_grad_(False)
    exported = torch.export.export(fast, (torch.randn(8, WIDTH),))
    assert "kernel_smith" in exported.graph_module.code
    torch.export.save(exported, tmp_path / "exported.pt2")
    libraries = tmp_path / "libraries"
    libraries.mkdir()
    installed = Path(sysconfig.get_path("purelib"))
    for name in ("torch", "torchgen", "functorch", "numpy", "numpy.libs", "typing_extensions.py"):
        if (installed / name).exists():
            (libraries / name).symlink_to(installed / name)
    for name in importlib.metadata.requires("torch") or ():
        module = installed / name.split(";")[0].split(">")[0].split("=")[0].split("!")[0].strip()
        if module.exists() and not (libraries / module.name).exists():
            (libraries / module.name).symlink_to(module)
    (libraries / "mpmath").symlink_to(installed / "mpmath")
    program = ALONE.format(
        libraries=str(libraries),
        folder=str(folder.parent),
        exported=str(tmp_path / "exported.pt2"),
    )
    base = getattr(sys, "_base_executable", sys.executable)
    ran = subprocess.run(
        [base, "-I", "-c", program], capture_output=True, text=True, timeout=120, check=False
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip() == (
        "1.25 True 1 by the kernel; by the reference: 1 other arguments, 1 gradients"
    )
