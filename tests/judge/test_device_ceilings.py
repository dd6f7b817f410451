"""Ceilings are measured once per device, driver and version of torch; then they are remembered."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest
import torch

from kernel_smith.evaluation.judge.evidence.ceilings import ceilings, measure_ceilings
from kernel_smith.records import Ceilings, Device

DEVICE = Device(
    name="A GPU",
    capability="9.0",
    memory_bytes=1 << 37,
    multiprocessors=132,
    l2_bytes=60 << 20,
    driver="580.1",
    runtime="13.0",
)


class Bench:
    """Counts how often it is asked to measure."""

    def __init__(self) -> None:
        self.asked = 0

    def __call__(self) -> Ceilings:
        self.asked += 1
        return Ceilings(
            device=DEVICE,
            copy_bytes_per_second=1e12 + self.asked,
            flops_per_second={"fp32": 5e13},
            launch_seconds=1e-6,
            measured_at=datetime(2026, 1, 2, tzinfo=UTC),
        )


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("KERNEL_SMITH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "devices"


def test_a_device_is_measured_once(cache: Path) -> None:
    bench = Bench()
    first = ceilings(DEVICE, bench)
    assert ceilings(DEVICE, bench) == first
    assert bench.asked == 1
    assert len(list(cache.iterdir())) == 1


@pytest.mark.parametrize("change", [{"driver": "590"}, {"name": "B"}, {"capability": "10.0"}])
def test_another_device_or_driver_is_measured_anew(cache: Path, change: dict[str, str]) -> None:
    bench = Bench()
    ceilings(DEVICE, bench)
    ceilings(DEVICE.model_copy(update=change), bench)
    assert bench.asked == 2


def test_another_version_of_torch_is_measured_anew(
    cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bench = Bench()
    ceilings(DEVICE, bench)
    monkeypatch.setattr(torch, "__version__", "99.0")
    ceilings(DEVICE, bench)
    assert bench.asked == 2


@pytest.mark.parametrize("content", [b"", b"{}", b'{"device": 3}', b"\xff\xfe", b"[" * 5000])
def test_a_corrupt_file_is_measured_again_and_replaced(cache: Path, content: bytes) -> None:
    bench = Bench()
    ceilings(DEVICE, bench)
    (path,) = cache.iterdir()
    path.write_bytes(content)
    again = ceilings(DEVICE, bench)
    assert bench.asked == 2
    assert ceilings(DEVICE, bench) == again
    assert bench.asked == 2


def test_without_a_place_to_remember_them_they_are_still_measured(cache: Path) -> None:
    cache.parent.mkdir()
    cache.write_text("not a folder")
    bench = Bench()
    assert ceilings(DEVICE, bench).flops_per_second == {"fp32": 5e13}


@pytest.mark.gpu
@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")
def test_a_real_device_has_plausible_limits() -> None:
    before = torch.get_float32_matmul_precision()
    measured = measure_ceilings()
    assert 1e10 < measured.copy_bytes_per_second < 1e14
    assert {"fp64", "fp32", "fp16"} <= set(measured.flops_per_second)
    assert all(1e10 < rate < 1e17 for rate in measured.flops_per_second.values())
    assert measured.flops_per_second["fp16"] > measured.flops_per_second["fp32"]
    assert 1e-7 < measured.launch_seconds < 1e-4
    assert torch.get_float32_matmul_precision() == before
