"""GPUs of other vendors: the same functions by other names, and what is refused there."""

from __future__ import annotations

import subprocess
import sys
from ctypes import c_uint64
from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.evaluation.backends import find_backend
from kernel_smith.evaluation.judge.platform.device import DevicePlatform
from kernel_smith.evaluation.sandbox import device_memory, triton_tools
from kernel_smith.evaluation.sandbox.confine import devices
from kernel_smith.evaluation.sandbox.device_memory import DeviceError, forget_persisting_lines
from kernel_smith.records import Options


@pytest.fixture
def torch_for(monkeypatch: pytest.MonkeyPatch) -> Any:
    """`torch_for(vendor)`: have torch be one for these GPUs, as far as its version tells."""

    def pretend(vendor: str) -> None:
        version = "2.8.0+metax3.5.3.9" if vendor == "maca" else "2.8.0"
        monkeypatch.setattr(torch, "__version__", version)
        monkeypatch.setattr(torch.version, "hip", "6.4" if vendor == "hip" else None)

    return pretend


class Function:
    """One of a library's, with the attribute that ctypes gives them."""

    restype: Any = None

    def __init__(self, name: str, driver: Driver) -> None:
        self._name = name
        self._driver = driver

    def __call__(self, *arguments: Any) -> Any:
        if self._name == "cuGetErrorString":
            arguments[1]._obj.value = b"out of paper"
            return 0
        if self._name.endswith("GetErrorString"):
            return b"out of paper"
        self._driver.called.append(self._name)
        return self._driver.code


class Driver:
    """Has every function there could be; all of them end with the same code."""

    def __init__(self, code: int) -> None:
        self.called: list[str] = []
        self.code = code

    def __getattr__(self, name: str) -> Function:
        return Function(name, self)


@pytest.mark.parametrize(("vendor", "prefix"), [("cuda", "cu"), ("maca", "mc"), ("hip", "hip")])
def test_memory_is_shared_by_functions_with_the_vendors_names(
    monkeypatch: pytest.MonkeyPatch, torch_for: Any, vendor: str, prefix: str
) -> None:
    torch_for(vendor)
    driver = Driver(code=0)
    monkeypatch.setattr(device_memory, "_driver", lambda: driver)
    device_memory._call("MemRelease", c_uint64(7))
    forget_persisting_lines()
    only_there = ["cuCtxResetPersistingL2Cache"] if vendor == "cuda" else []
    assert driver.called == [f"{prefix}MemRelease", *only_there]
    driver.code = 2
    with pytest.raises(DeviceError, match=rf"{prefix}MemUnmap: out of paper \(2\)"):
        device_memory._call("MemUnmap", c_uint64(0))


@pytest.mark.parametrize(("vendor", "usable"), [("cuda", True), ("maca", False), ("hip", False)])
def test_triton_asks_for_its_compilers_only_where_they_are_known(
    torch_for: Any, vendor: str, usable: bool
) -> None:
    torch_for(vendor)
    assert triton_tools.is_usable() is usable


STARTING = """
import sys
from pathlib import Path
from kernel_smith.evaluation.sandbox import begin
from kernel_smith.evaluation.sandbox.confine import devices

devices.FOLDER = Path(sys.argv[1])
assert devices.nodes()
begin._load_runner()
"""


@pytest.mark.slow
@pytest.mark.skipif(bool(devices.nodes()), reason="needs a machine without NVIDIA's driver")
def test_an_amd_graphics_card_beside_a_torch_for_others_disturbs_nothing(tmp_path: Path) -> None:
    """As on many desktops: its device file is there, and a libcuda for Triton to link is not."""
    (tmp_path / "kfd").symlink_to("/dev/null")
    done = subprocess.run(
        [sys.executable, "-c", STARTING, str(tmp_path)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr


def test_triton_kernels_for_another_gpu_are_refused_with_two_ways_out(torch_for: Any) -> None:
    def check(backend: str) -> None:
        platform = DevicePlatform.__new__(DevicePlatform)  # there is no device to make it on
        platform.check_options(find_backend(backend), Options())

    torch_for("maca")
    check("maca")
    with pytest.raises(MissingPrerequisite, match="this torch is for maca") as caught:
        check("triton")
    assert "--backend maca" in caught.value.hint and "--interpret" in caught.value.hint
    torch_for("cuda")
    check("triton")
