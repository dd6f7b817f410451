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


@pytest.fixture
def folder(tmp_path: Path, driver: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """In the place of /dev; `driver` is empty."""
    folder = tmp_path / "dev"
    (folder / "dri").mkdir(parents=True)
    monkeypatch.setattr(devices, "FOLDER", folder)
    monkeypatch.setattr(devices, "TOPOLOGY", tmp_path / "topology")
    return folder


def add_nodes(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).symlink_to("/dev/null")  # any device will do


def test_files_of_graphics_cards_are_handed_over_only_beside_a_gpu_that_needs_them(
    folder: Path,
) -> None:
    add_nodes(folder, "dri/card0", "dri/renderD128", "nvidia0")
    assert devices.nodes() == (folder / "nvidia0",)
    assert devices.descriptions() == ()
    add_nodes(folder, "mxcd")
    names = ["dri/card0", "dri/renderD128", "mxcd", "nvidia0"]
    assert devices.nodes() == tuple(folder / name for name in names)
    assert Path("/sys/devices") in devices.descriptions()


LISTED = """\
mx-smi  version: 2.2.3
GPU#0    MXC500        0000:08:00.0    Available (UUID: GPU-1)
GPU#1    MXC600-AL     0000:09:00.0    Available (UUID: GPU-2)
"""


def test_metax_gpus_are_listed_by_their_own_tool(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    add_nodes(folder, "mxcd", "dri/renderD128")
    tool = tmp_path / "mx-smi"
    tool.write_text(f"#!/bin/sh\ntest \"$1\" = -L || exit 1\ncat <<'END'\n{LISTED}END\n")
    tool.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    assert gpus() == Gpus(("MXC500", "MXC600-AL"), None, "MetaX")


@pytest.mark.parametrize("text", [None, "#!/bin/sh\nexit 1\n", "no program at all"])
def test_a_metax_gpu_that_nobody_lists_counts_all_the_same(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str | None
) -> None:
    add_nodes(folder, "mxcd")
    if text is not None:
        (tmp_path / "mx-smi").write_text(text)
        (tmp_path / "mx-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert gpus() == Gpus(("MetaX GPU of unknown name",), None, "MetaX")


def test_amd_gpus_are_told_from_processors(folder: Path, tmp_path: Path) -> None:
    add_nodes(folder, "kfd", "dri/renderD128")
    assert gpus() == Gpus(("AMD GPU of unknown name",), None, "AMD")
    for number, units, name in ((0, 0, ""), (1, 440, "gfx90a"), (2, 440, "")):
        node = tmp_path / "topology" / str(number)
        node.mkdir(parents=True)
        (node / "properties").write_text(f"cpu_cores_count 0\nsimd_count {units}\n")
        (node / "name").write_text(f"{name}\n")
    assert gpus().names == ("gfx90a", "AMD GPU of unknown name")
