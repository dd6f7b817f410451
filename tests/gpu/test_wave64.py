"""MACA and HIP sources on an NVIDIA GPU: waves of 64 threads give what torch computes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
import torch

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.inline.build import build
from kernel_smith.inline.library import Library
from kernel_smith.inline.signature import prototypes
from kernel_smith.inline.toolchain import find_toolchain

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]

SOURCES = Path(__file__).parent.parent / "inline" / "sources"
# A failed assertion ends the process's use of the GPU, so each has a process of its own.
CAUGHT = """
import sys
from pathlib import Path
import torch
from kernel_smith.inline.library import Library
from kernel_smith.inline.signature import prototypes
library = Library(sys.argv[1], prototypes(Path(sys.argv[2]).read_text()), device="cuda")
x = torch.ones(1024, device="cuda")
y = torch.empty(1024, device="cuda")
getattr(library, sys.argv[3])(*([x, y] if sys.argv[3] != "launch_too_many_waves" else [y]))
torch.cuda.synchronize()
print("passed", y[0].item())
"""


def built(name: str) -> Path:
    try:
        find_toolchain("cuda")
    except MissingPrerequisite as missing:
        pytest.skip(missing.what)
    dialect = name.split(".")[1]
    result = build((SOURCES / name).read_text(), (), dialect, route="nvidia")
    assert result.path is not None, result.log
    return result.path


def opened(name: str) -> Library:
    return Library(built(name), prototypes((SOURCES / name).read_text()), device="cuda")


@pytest.fixture(scope="module")
def maca() -> Library:
    return opened("wave_sums.maca.cpp")


@pytest.fixture(scope="module")
def hip() -> Library:
    return opened("wave_sums.hip.cpp")


@pytest.mark.parametrize("threads", [64, 256, 960])
@pytest.mark.parametrize("dialect", ["maca", "hip"])
def test_sums_over_waves(request: pytest.FixtureRequest, dialect: str, threads: int) -> None:
    library = request.getfixturevalue(dialect)
    x = torch.randint(-50, 50, (7 * threads // 64, 64), device="cuda").float()
    y = torch.empty(x.shape[0], device="cuda")
    assert library.launch_wave_rows(x, y, x.numel(), threads) == 0
    assert torch.equal(y, x.sum(1))


def test_votes_and_shuffles(maca: Library) -> None:
    x = torch.arange(128, device="cuda").float() - 40
    y = torch.empty(128, 8, dtype=torch.int64, device="cuda")
    assert maca.launch_wave_votes(x, y) == 0
    values = x.long().cpu().view(2, 64)
    lane = torch.arange(64)
    positive = [sum(1 << i for i in range(64) if wave[i] > 0) for wave in values.tolist()]
    signed = torch.tensor([p - 2**64 if p >= 2**63 else p for p in positive])
    result = y.cpu().view(2, 64, 8)
    assert torch.equal(result[..., 0], signed[:, None].expand(2, 64))
    assert torch.equal(result[..., 1], values[:, (lane - 1).clamp(0)])
    assert torch.equal(result[..., 2], values[:, :1].expand(2, 64))
    assert torch.equal(result[..., 3], values[:, lane // 16 * 16 + 7])
    assert torch.equal(result[..., 4], values[:, torch.where(lane + 40 < 64, lane + 40, lane)])
    assert torch.equal(result[..., 5], values[:, lane ^ 63])
    assert result[0, :, 6].tolist() == [2] * 64
    assert result[1, :, 6].tolist() == [3] * 64
    assert result[..., 7].unique().tolist() == [64]


@pytest.mark.parametrize("threads", [64, 128, 512, 320])
def test_sums_over_blocks(maca: Library, threads: int) -> None:
    x = torch.randint(-50, 50, (33, 1000), device="cuda").float()
    y = torch.empty(33, device="cuda")
    assert maca.launch_block_rows(x, y, 33, 1000, threads) == 0
    assert torch.equal(y, x.sum(1))


def test_softmax_of_rows(maca: Library) -> None:
    x = torch.randn(65, 1000, device="cuda").bfloat16()
    y = torch.empty_like(x)
    assert maca.launch_softmax(x, y, 65, 1000) == 0
    torch.testing.assert_close(y.float(), x.float().softmax(1), rtol=2e-2, atol=1e-4)


def test_a_device_says_that_its_waves_have_64_threads(maca: Library) -> None:
    assert maca.wave_size_of_device() == 64


def test_hip_reduces_blocks_counts_votes_and_serves_a_few_lanes(hip: Library) -> None:
    x = torch.randint(-8, 8, (9, 777), device="cuda").half()
    y = torch.empty(9, device="cuda")
    assert hip.launch_block_rows(x, y, 9, 777) == 0
    assert torch.equal(y, x.float().sum(1))
    z = torch.randn(128, device="cuda")
    counts = torch.empty(2, dtype=torch.int64, device="cuda")
    assert hip.launch_count_positive(z, counts) == 0
    assert torch.equal(counts, (z.view(2, 64) > 0).sum(1))
    few = torch.empty(1, device="cuda")
    assert hip.launch_few_lanes(torch.arange(64, device="cuda").float(), few) == 0
    assert few.item() == 6


def test_launches_follow_torchs_current_stream(maca: Library) -> None:
    x = torch.ones(64 * 1024, device="cuda")
    y = torch.empty(1024, device="cuda")
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        maca.launch_wave_rows(x, y, x.numel(), 256)
    y.zero_()
    graph.replay()
    assert torch.equal(y, torch.full_like(y, 64))


def run_narrow(launcher: str) -> subprocess.CompletedProcess[str]:
    name = "narrow_warps.maca.cpp"
    words = [sys.executable, "-c", CAUGHT, str(built(name)), str(SOURCES / name), launcher]
    return subprocess.run(words, capture_output=True, text=True, timeout=120)


@pytest.mark.parametrize(
    ("launcher", "message"),
    [
        ("launch_all_call", "a mask that does not name it"),
        ("launch_too_many_waves", "more than 15 waves"),
    ],
)
def test_a_kernel_for_warps_of_32_is_caught(launcher: str, message: str) -> None:
    done = run_narrow(launcher)
    assert done.returncode != 0
    assert "passed" not in done.stdout
    assert message in done.stderr


def test_half_a_wave_may_name_itself() -> None:
    done = run_narrow("launch_half_calls")
    assert done.stdout.strip() == "passed 64.0", done.stderr
