"""GPUs by their device files and by what the driver writes about them."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_smith.evaluation.sandbox.confine import devices
from kernel_smith.evaluation.sandbox.confine.devices import Gpus, gpus

CLOSED = """\
NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.06  Wed Jun 26 06:46:07 UTC 2024
GCC version:  gcc version 11.4.0 (Ubuntu 11.4.0-1ubuntu1~22.04)
"""
OPEN = """\
NVRM version: NVIDIA UNIX Open Kernel Module for aarch64  580.95  Release Build  (dvs-builder@U22)
GCC version:  gcc version 12.3.0 (Debian 12.3.0-1)
"""
INFORMATION = """\
Model: \t\t {model}
IRQ:   \t\t 25
GPU UUID: \t GPU-00000000-0000-0000-0000-000000000000
Bus Location: \t 0000:{bus}:00.0
Device Minor: \t {minor}
GPU Excluded:\t No
"""


@pytest.fixture
def driver(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder in which the driver describes itself; empty at first."""
    monkeypatch.setattr(devices, "DRIVER", tmp_path)
    return tmp_path


def show_nodes(monkeypatch: pytest.MonkeyPatch, *names: str) -> None:
    monkeypatch.setattr(devices, "nodes", lambda: tuple(Path("/dev") / name for name in names))


def describe(driver: Path, bus: str, minor: int, model: str) -> None:
    folder = driver / "gpus" / f"0000:{bus}:00.0"
    folder.mkdir(parents=True)
    (folder / "information").write_text(INFORMATION.format(model=model, bus=bus, minor=minor))


def test_a_machine_without_a_driver_has_no_gpus(
    driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_nodes(monkeypatch)
    assert gpus() == Gpus(names=(), driver=None)


@pytest.mark.parametrize(
    ("text", "version"), [(CLOSED, "535.183.06"), (OPEN, "580.95"), ("?", None)]
)
def test_the_version_of_the_driver_is_read(
    driver: Path, monkeypatch: pytest.MonkeyPatch, text: str, version: str | None
) -> None:
    show_nodes(monkeypatch)
    (driver / "version").write_text(text)
    assert gpus().driver == version


def test_names_come_in_the_order_of_the_device_files(
    driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_nodes(monkeypatch, "nvidia10", "nvidia2", "nvidiactl", "nvidia-uvm")
    describe(driver, "01", 10, "NVIDIA A100-SXM4-80GB")
    describe(driver, "0f", 2, "NVIDIA H200")
    assert gpus().names == ("NVIDIA H200", "NVIDIA A100-SXM4-80GB")


def test_a_gpu_without_a_device_file_is_not_here(
    driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_nodes(monkeypatch, "nvidia1", "nvidiactl")
    describe(driver, "01", 0, "NVIDIA H200")
    describe(driver, "02", 1, "NVIDIA H100")
    assert gpus().names == ("NVIDIA H100",)


def test_control_files_alone_are_no_gpu(driver: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    show_nodes(monkeypatch, "nvidiactl", "nvidia-uvm", "nvidia-cap1")
    assert gpus().names == ()


def test_a_gpu_that_nobody_describes_counts_all_the_same(
    driver: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    show_nodes(monkeypatch, "nvidia0")
    (name,) = gpus().names
    assert "unknown" in name
