"""Kernels on the emulated GPU: real sources, compiled by the host's compiler, called by ctypes."""

import ctypes
import functools
import os
import shutil
import subprocess
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
import torch

from kernel_smith.inline.simt import compiler_arguments, rewrite

COMPILER = shutil.which("g++") or shutil.which("clang++")
pytestmark = pytest.mark.skipif(COMPILER is None, reason="no C++ compiler: apt-get install g++")

SOURCES = Path(__file__).parent / "simt_sources"

LAUNCH_FAILURE = 719
INVALID_CONFIGURATION = 9
INVALID_VALUE = 1

Compiled = Callable[[str], ctypes.CDLL]


def build(folder: Path, dialect: str, source: str) -> subprocess.CompletedProcess[str]:
    text = folder / "kernel.cpp"
    text.write_text(rewrite(source))
    assert COMPILER is not None
    fixed = ["-std=c++17", "-O1", "-shared", "-fPIC", "-Wall", "-Wno-sign-compare"]
    fixed += ["-Wno-unused-function"]
    return subprocess.run(
        [
            COMPILER,
            *fixed,
            *compiler_arguments(dialect),
            str(text),
            "-o",
            str(folder / "kernel.so"),
        ],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "LC_ALL": "C", "TMPDIR": str(folder)},
    )


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """A library of a source; each is compiled once, and without a warning."""

    @functools.cache
    def compile_once(name: str) -> ctypes.CDLL:
        dialect = name.split(".")[1]
        folder = tmp_path_factory.mktemp(dialect)
        result = build(folder, dialect, (SOURCES / name).read_text())
        assert result.returncode == 0, result.stderr
        assert result.stderr == ""
        return ctypes.CDLL(str(folder / "kernel.so"))

    return compile_once


def at(tensor: torch.Tensor) -> ctypes.c_void_p:
    return ctypes.c_void_p(tensor.data_ptr())


def test_a_thread_per_element_adds_vectors(compiled: Compiled) -> None:
    x, y, z = torch.randn(1000), torch.randn(1000), torch.zeros(1001)
    compiled("basics.cuda.cpp").launch_add(at(x), at(y), at(z), ctypes.c_int64(1000), None)
    assert torch.equal(z[:1000], x + y)
    assert z[1000] == 0


def test_two_dimensional_blocks_transpose_through_shared_memory(compiled: Compiled) -> None:
    x, y = torch.randn(19, 37), torch.zeros(37, 19)
    compiled("basics.cuda.cpp").launch_transpose(at(x), at(y), 19, 37)
    assert torch.equal(y, x.T)


@pytest.mark.parametrize("threads", [32, 96, 256, 1024])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_block_reduces_with_shuffles(
    compiled: Compiled, threads: int, dtype: torch.dtype
) -> None:
    x = torch.randint(-50, 50, (5, 777)).to(dtype)
    y = torch.zeros(5, dtype=dtype)
    wide = ctypes.c_bool(dtype == torch.float64)
    compiled("basics.cuda.cpp").launch_sums(at(x), at(y), 5, 777, threads, wide)
    assert torch.equal(y, x.sum(1))


def test_dynamic_shared_memory_has_a_limit_that_can_be_raised(compiled: Compiled) -> None:
    library = compiled("basics.cuda.cpp")
    x = torch.arange(300, dtype=torch.int32)
    assert library.launch_reverse(at(x), 300, 1200, False) == 0
    assert torch.equal(x, torch.arange(300, dtype=torch.int32).flip(0))
    assert library.launch_reverse(at(x), 300, 100_000, False) == INVALID_VALUE
    assert library.launch_reverse(at(x), 300, 100_000, True) == 0
    assert library.launch_reverse(at(x), 300, 1 << 20, True) == INVALID_VALUE


def test_atomics_of_all_threads_count(compiled: Compiled) -> None:
    x = torch.randint(0, 7, (640,), dtype=torch.int32)
    bins, largest, last = (torch.zeros(n, dtype=torch.int32) for n in (8, 1, 2))
    total = torch.zeros(1)
    library = compiled("basics.cuda.cpp")
    library.launch_histogram(at(x), at(bins), at(total), at(largest), at(last), 10)
    assert torch.equal(bins[1:], torch.bincount(x, minlength=7).int())
    assert (total.item(), largest.item()) == (320.0, x.max().item())
    assert last.tolist() == [9, 2 * 640]


def test_every_thread_of_a_three_dimensional_grid_runs_once(compiled: Compiled) -> None:
    out = torch.zeros(12, 30, dtype=torch.int32)
    compiled("basics.cuda.cpp").launch_ranks(at(out))
    expected = torch.arange(30).mul(1000) + torch.arange(12).unsqueeze(1)
    assert torch.equal(out, expected.int())


def test_arguments_are_evaluated_once(compiled: Compiled) -> None:
    assert compiled("basics.cuda.cpp").arguments_are_evaluated_once() == 1063


def test_impossible_launches_leave_an_error_and_run_nothing(compiled: Compiled) -> None:
    library = compiled("basics.cuda.cpp")
    x = torch.arange(2000, dtype=torch.int32)
    assert library.too_many_threads(at(x)) == INVALID_CONFIGURATION
    assert library.no_blocks(at(x)) == 0
    assert torch.equal(x, torch.arange(2000, dtype=torch.int32))


def test_the_device_answers_questions(compiled: Compiled) -> None:
    assert compiled("basics.cuda.cpp").occupancy() == 8


def test_kernels_are_not_exported(compiled: Compiled) -> None:
    with pytest.raises(AttributeError):
        _ = compiled("basics.cuda.cpp").reverse


def test_shared_memory_of_equal_name_in_two_libraries_is_not_one(compiled: Compiled) -> None:
    out = torch.full((1,), 3, dtype=torch.int32)
    compiled("basics.cuda.cpp").launch_remember(at(out), 7)
    compiled("waves.cuda.cpp").launch_remember(at(out), 8)
    assert out.item() == 0


def test_launches_of_several_system_threads_take_turns(compiled: Compiled) -> None:
    library = compiled("basics.cuda.cpp")
    x = torch.randint(-50, 50, (40, 777)).float()

    def sums(_: int) -> bool:
        y = torch.zeros(40)
        library.launch_sums(at(x), at(y), 40, 777, 256, False)
        return torch.equal(y, x.sum(1))

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(sums, range(8)))


def test_shuffles_and_votes_read_the_right_lanes(compiled: Compiled) -> None:
    out = torch.zeros(64, 12, dtype=torch.int32)
    compiled("waves.cuda.cpp").launch_shuffles(at(out))
    for thread, row in enumerate(out.tolist()):
        warp, lane = thread // 32 * 32, thread % 32
        third = sum(1 << i for i in range(32) if (warp + i) % 3 == 0)
        same = sum(1 << i for i in range(32) if i % 4 == lane % 4)
        expected = [
            warp + 5,
            warp + lane // 8 * 8 + 3,
            thread - 2 if lane >= 2 else thread,
            thread - 3 if lane % 4 == 3 else thread,
            thread + 4 if lane < 28 else thread,
            thread + 1 if lane % 16 < 15 else thread,
            warp + (lane ^ 9),
            # Lanes of an earlier segment may be read, those of a later one not.
            warp + (lane ^ 12) if (lane ^ 12) < lane // 8 * 8 + 8 else thread,
            third,
            2 if warp else 1,
            sum(range(warp, warp + 32)) * 100 + warp + 31,
            same,
        ]
        wrapped = [value - (1 << 32) if value >= 1 << 31 else value for value in expected]
        assert row == wrapped, f"thread {thread}"


def test_parts_of_a_wave_can_work_apart_and_meet_again(compiled: Compiled) -> None:
    out = torch.zeros(32, dtype=torch.int32)
    compiled("waves.cuda.cpp").launch_halves(at(out))
    common = 16 * 100000 + 1
    assert out.tolist() == [20019 + common] * 20 + [25 + common] * 12


def test_cooperative_groups_reduce_over_tiles(compiled: Compiled) -> None:
    x = torch.randint(0, 9, (48,)).float()
    out = torch.zeros(48)
    compiled("waves.cuda.cpp").launch_grouped(at(x), at(out))
    tiles = x.view(6, 8)
    expected = tiles.sum(1) + 1000 * tiles.max(1).values + 2
    assert torch.equal(out.view(6, 8), expected.unsqueeze(1).expand(6, 8))


@pytest.mark.parametrize("n", [1, 2, 33, 100])
def test_threads_that_left_count_as_arrived(compiled: Compiled, n: int) -> None:
    x, y = torch.arange(100, dtype=torch.int32), torch.zeros(100, dtype=torch.int32)
    assert compiled("waves.cuda.cpp").launch_leaves_early(at(x), at(y), n) == 0
    assert (y[: n // 2 * 2] == n * (n - 1) // 2 + 1).all()
    assert (y[n:] == 0).all()


@pytest.mark.parametrize(
    ("which", "message"),
    [
        (0, "some threads wait at the __syncthreads of line"),
        (1, "threads wait for others that never arrive"),
        (2, "__shfl_sync of line"),
        (3, "which does not name it"),
        (4, "__trap"),
        (5, "a launch from within a kernel"),
        (6, "a mask that names no lane"),
    ],
)
def test_a_kernel_that_cannot_go_on_fails_instead_of_hanging(
    compiled: Compiled, capfd: pytest.CaptureFixture[str], which: int, message: str
) -> None:
    library = compiled("waves.cuda.cpp")
    out = torch.zeros(64, dtype=torch.int32)
    assert library.launch_wrong(which, at(out)) == LAUNCH_FAILURE
    assert message in capfd.readouterr().err
    # And the next launch finds everything in order.
    library.launch_halves(at(out))
    assert out[0] == 1620020


def test_the_message_names_the_lines_of_the_source(
    compiled: Compiled, capfd: pytest.CaptureFixture[str]
) -> None:
    lines = (SOURCES / "waves.cuda.cpp").read_text().splitlines()
    first = lines.index("__global__ void different_barriers(int* out) {") + 3
    compiled("waves.cuda.cpp").launch_wrong(0, at(torch.zeros(64, dtype=torch.int32)))
    error = capfd.readouterr().err
    assert f"line {first}, others at the __syncthreads of line {first + 3}" in error


def test_a_thread_that_spins_lets_others_run(compiled: Compiled) -> None:
    flag, out = torch.zeros(1, dtype=torch.int32), torch.zeros(1, dtype=torch.int32)
    compiled("waves.cuda.cpp").launch_flag(at(flag), at(out))
    assert out.item() == 7


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_all_narrow_numbers_become_the_right_floats(compiled: Compiled, dtype: torch.dtype) -> None:
    x = torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(dtype)
    y = torch.zeros(65536)
    bf16 = ctypes.c_bool(dtype == torch.bfloat16)
    compiled("numbers.cuda.cpp").launch_widen(at(x), at(y), bf16)
    torch.testing.assert_close(y, x.float(), rtol=0, atol=0, equal_nan=True)
    assert torch.equal(y.signbit()[~y.isnan()], x.float().signbit()[~y.isnan()])


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_floats_are_rounded_to_the_nearest_narrow_number(
    compiled: Compiled, dtype: torch.dtype
) -> None:
    exact = torch.arange(65536, dtype=torch.int32).to(torch.uint16).view(dtype).float()
    exact = exact[exact.isfinite()].sort().values
    ties = (exact[1:].double() + exact[:-1].double()).div(2).float()
    toward = torch.full_like(ties, float("inf"))
    special = torch.tensor([float("inf"), -float("inf"), float("nan"), 3.4e38, 65519.0, 65520.0])
    x = torch.cat([exact, ties, ties.nextafter(toward), ties.nextafter(-toward), special])
    y = torch.zeros(len(x), dtype=dtype)
    bf16 = ctypes.c_bool(dtype == torch.bfloat16)
    compiled("numbers.cuda.cpp").launch_narrow(at(x), at(y), len(x), bf16)
    torch.testing.assert_close(y, x.to(dtype), rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_narrow_arithmetic_is_rounded_once(compiled: Compiled, dtype: torch.dtype) -> None:
    x, y = torch.randn(4096).to(dtype), torch.randn(4096).to(dtype)
    out = torch.zeros(5, 4096, dtype=dtype)
    bf16 = ctypes.c_bool(dtype == torch.bfloat16)
    compiled("numbers.cuda.cpp").launch_arithmetic(at(x), at(y), at(out), 4096, bf16)
    fused = (x.double() * y.double() + x.double()).to(dtype)
    for row, expected in zip(out, (x + y, x * y, x / y, torch.maximum(x, y), fused), strict=True):
        assert torch.equal(row, expected)


def test_conversions_and_intrinsics_give_known_values(compiled: Compiled) -> None:
    out = torch.zeros(14)
    compiled("numbers.cuda.cpp").launch_conversions(at(out))
    expected = [0.0, 25.0, 15361.0, 5.0, 182.0, 40.0, 2.25, 0.875, 11.0, 9.5, 1.0, 1.0, 1.0, 1.0]
    torch.testing.assert_close(out, torch.tensor(expected), rtol=1e-6, atol=0)


def test_a_maca_source_reduces_over_waves_of_64(compiled: Compiled) -> None:
    x = torch.randint(-20, 20, (3, 1000)).bfloat16()
    y = torch.full((3,), 7.0)
    assert compiled("waves.maca.cpp").launch_mean(at(x), at(y), 3, 1000, None) == 0
    torch.testing.assert_close(y, x.float().mean(1))


def test_masks_of_maca_have_64_bits(compiled: Compiled) -> None:
    out = torch.zeros(64, dtype=torch.int64)
    compiled("waves.maca.cpp").launch_ballots(at(out))
    assert out.tolist() == [0x5555555555555555 + 64] * 64


def test_a_maca_kernel_that_thinks_of_32_lanes_is_caught(
    compiled: Compiled, capfd: pytest.CaptureFixture[str]
) -> None:
    assert compiled("waves.maca.cpp").launch_narrow_mask(at(torch.ones(64))) == LAUNCH_FAILURE
    assert "0xffffffff, which does not name it" in capfd.readouterr().err


def test_a_hip_source_reduces_without_masks(compiled: Compiled) -> None:
    x, y = torch.randn(4, 150).half(), torch.zeros(4)
    assert compiled("waves.hip.cpp").launch_max(at(x), at(y), 4, 150, None) == 0
    assert torch.equal(y, x.float().max(1).values)


def test_an_operation_without_mask_takes_the_active_lanes(compiled: Compiled) -> None:
    out = torch.zeros(64, dtype=torch.int32)
    compiled("waves.hip.cpp").launch_diverging(at(out))
    for thread, value in enumerate(out.tolist()):
        expected = 1009 if thread < 10 else 1029 if thread < 30 else 0
        # Round one: the lanes with t % 3 >= 1, which are 42; round two: with t % 3 == 2, 21.
        expected += 10000 * [0, 42, 63][thread % 3]
        expected += 1 + 1000000 * min(thread + 1, 63)
        assert value == expected, f"thread {thread}"


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("#include <mma.h>\n", "tensor cores"),
        ("#include <cuda/pipeline>\n", "cuda::pipeline"),
        ('__global__ void k(int* x) { asm volatile("bar.sync 0;"); }\n', "inline assembly"),
        ("__global__ void k(float* x) { x[0] = __builtin_amdgcn_rcpf(2.0f); }\n", "builtin"),
        (
            "#include <cooperative_groups.h>\n__global__ void k() "
            "{ cooperative_groups::this_grid().sync(); }\n",
            "grid.sync",
        ),
    ],
)
def test_what_is_not_emulated_says_so(tmp_path: Path, source: str, what: str) -> None:
    result = build(tmp_path, "cuda", source)
    assert result.returncode != 0
    assert "not emulated on the CPU" in result.stderr
    assert what in result.stderr
