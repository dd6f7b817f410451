"""Loops of C++ seeds as vector code: which are marked, what they compute, and how exactly."""

from __future__ import annotations

import math
import subprocess
from pathlib import Path

import pytest
import torch

from kernel_smith.inline import Library, cpp
from kernel_smith.inline.toolchain import find_toolchain
from kernel_smith.proposers.seed.cpp_text import cpp_source
from kernel_smith.proposers.seed.cpp_vectors import with_vectors

ROWS, COLUMNS = 37, 1001

ROW_SUM = """extern "C" void row_sum(const float* in_ptr0, float* out_ptr0)
{
    for(int64_t x0=0; x0<37; x0+=1)
    {
        {
            float tmp_acc0 = 0;
            for(int64_t x1=0; x1<1001; x1+=1)
            {
                auto tmp0 = in_ptr0[x1 + 1001L*x0];
                auto tmp1 = std::exp(tmp0);
                tmp_acc0 = tmp_acc0 + tmp1;
            }
            out_ptr0[x0] = tmp_acc0;
        }
    }
}
"""
COLUMN_SUM = """extern "C" void column_sum(const float* in_ptr0, float* out_ptr0)
{
    #pragma omp parallel
    {
        #pragma omp for
        for(int64_t x0=0; x0<1001; x0+=1)
        {
            {
                float tmp_acc0 = 0;
                for(int64_t x1=0; x1<37; x1+=1)
                {
                    auto tmp0 = in_ptr0[x0 + 1001L*x1];
                    tmp_acc0 = tmp_acc0 + tmp0;
                }
                out_ptr0[x0] = tmp_acc0;
            }
        }
    }
}
"""
EXTREMES = """extern "C" void extremes(const float* in_ptr0, float* out_ptr0, float* out_ptr1)
{
    for(int64_t x0=0; x0<37; x0+=1)
    {
        float tmp_acc0 = -std::numeric_limits<float>::infinity();
        float tmp_acc1 = std::numeric_limits<float>::infinity();
        for(int64_t x1=0; x1<1001; x1+=1)
        {
            auto tmp0 = in_ptr0[x1 + 1001L*x0];
            tmp_acc0 = max_propagate_nan(tmp_acc0, tmp0);
            tmp_acc1 = min_propagate_nan(tmp_acc1, tmp0);
        }
        out_ptr0[x0] = tmp_acc0;
        out_ptr1[x0] = tmp_acc1;
    }
}
"""
LONG_SUM = """extern "C" void long_sum(const float* in_ptr0, float* out_ptr0)
{
    float tmp_acc0 = 0;
    CascadeSumHelper<float, 4096> scalar_helper0(static_cast<int64_t>(37037L));
    for(int64_t x0=0; x0<37037; x0+=1)
    {
        auto tmp0 = in_ptr0[x0];
        tmp_acc0 = cascade_sum_combine(tmp0, &scalar_helper0);
    }
    tmp_acc0 = cascade_sum_final(&scalar_helper0);
    out_ptr0[0L] = tmp_acc0;
}
"""
SHARED_SUM = """extern "C" void shared_sum(const float* in_ptr0, float* out_ptr0)
{
    float tmp_acc0 = 0;
    #pragma omp parallel
    {
        float tmp_acc0_local = 0;
        #pragma omp for
        for(int64_t x0=0; x0<37037; x0+=1)
        {
            auto tmp0 = in_ptr0[x0];
            tmp_acc0_local = tmp_acc0_local + tmp0;
        }
        #pragma omp atomic
        tmp_acc0 += tmp_acc0_local;
    }
    out_ptr0[0L] = tmp_acc0;
}
"""
IS_ANY_ODD = """extern "C" void is_any_odd(const float* in_ptr0, bool* out_ptr0, float* out_ptr1)
{
    for(int64_t x0=0; x0<37; x0+=1)
    {
        bool tmp_acc0 = 0;
        for(int64_t x1=0; x1<1001; x1+=1)
        {
            auto tmp0 = in_ptr0[x1 + 1001L*x0];
            auto tmp1 = tmp0 == tmp0;
            auto tmp2 = !tmp1;
            tmp_acc0 = tmp_acc0 || tmp2;
        }
        out_ptr0[x0] = tmp_acc0;
        #pragma GCC ivdep
        for(int64_t x1=0; x1<1001; x1+=1)
        {
            auto tmp0 = in_ptr0[x1 + 1001L*x0];
            auto tmp1 = out_ptr0[x0];
            auto tmp2 = tmp1 ? 0.0f : tmp0;
            out_ptr1[x1 + 1001L*x0] = tmp2;
        }
    }
}
"""
MANTISSAS = """extern "C" void mantissas(const float* in_ptr0, float* out_ptr0, int32_t* out_ptr1)
{
    #pragma GCC ivdep
    for(int64_t x0=0; x0<37037; x0+=1)
    {
        auto tmp0 = in_ptr0[x0];
        int32_t tmp1;
        auto tmp2 = std::frexp(tmp0, &tmp1);
        out_ptr0[x0] = tmp2;
        out_ptr1[x0] = tmp1;
    }
}
"""
LARGEST_AT = """extern "C" void largest_at(const float* in_ptr0, int64_t* out_ptr0)
{
    for(int64_t x0=0; x0<37; x0+=1)
    {
        IndexValue<float> tmp_acc0 = IndexValue<float>{0, -std::numeric_limits<float>::infinity()};
        for(int64_t x1=0; x1<1001; x1+=1)
        {
            auto tmp0 = in_ptr0[x1 + 1001L*x0];
            tmp_acc0 = argmax_combine(tmp_acc0, tmp0, x1);
        }
        out_ptr0[x0] = tmp_acc0.index;
    }
}
"""
HALVES = """extern "C" void halves(const at::Half* in_ptr0, float* out_ptr0, at::Half* out_ptr1)
{
    for(int64_t x0=0; x0<37; x0+=1)
    {
        float tmp_acc0 = 0;
        for(int64_t x1=0; x1<1001; x1+=1)
        {
            auto tmp0 = in_ptr0[x1 + 1001L*x0];
            auto tmp1 = c10::convert<float>(tmp0);
            tmp_acc0 = tmp_acc0 + tmp1;
        }
        out_ptr0[x0] = tmp_acc0;
        #pragma GCC ivdep
        for(int64_t x1=0; x1<1001; x1+=1)
        {
            auto tmp0 = in_ptr0[x1 + 1001L*x0];
            auto tmp1 = c10::convert<float>(tmp0);
            auto tmp2 = out_ptr0[x0];
            auto tmp3 = float(tmp1 * tmp2);
            auto tmp4 = c10::convert<at::Half>(tmp3);
            out_ptr1[x1 + 1001L*x0] = tmp4;
        }
    }
}
"""
SHARED_HALVES = """extern "C" void shared_halves(const at::Half* in_ptr0, at::Half* in_out_ptr0)
{
    auto out_ptr0 = in_out_ptr0;
    #pragma omp parallel
    {
        #pragma omp for
        for(int64_t x0=0; x0<37037; x0+=1)
        {
            auto tmp0 = in_ptr0[x0];
            auto tmp1 = c10::convert<float>(tmp0);
            auto tmp2 = out_ptr0[x0];
            auto tmp3 = c10::convert<float>(tmp2);
            auto tmp4 = float(tmp1 / tmp3);
            auto tmp5 = c10::convert<at::Half>(tmp4);
            in_out_ptr0[x0] = tmp5;
        }
    }
}
"""
CLAMPED = """extern "C" void clamped(const float* in_ptr0, float* out_ptr0)
{
    #pragma GCC ivdep
    for(int64_t x0=0; x0<37037; x0+=1)
    {
        auto tmp0 = in_ptr0[x0];
        auto tmp1 = std::max(tmp0, decltype(tmp0)(0));
        auto tmp2 = static_cast<float>(3.0);
        auto tmp3 = float(tmp1 + tmp2);
        auto tmp4 = static_cast<float>(6.0);
        auto tmp5 = tmp3 / tmp4;
        auto tmp6 = static_cast<float>(0.0);
        auto tmp7 = max_propagate_nan(tmp5, tmp6);
        auto tmp8 = static_cast<float>(1.0);
        auto tmp9 = min_propagate_nan(tmp7, tmp8);
        auto tmp10 = float(tmp1 * tmp9);
        out_ptr0[x0] = tmp10;
    }
}
"""
KERNELS = (
    CLAMPED,
    HALVES,
    SHARED_HALVES,
    ROW_SUM,
    COLUMN_SUM,
    EXTREMES,
    LONG_SUM,
    SHARED_SUM,
    IS_ANY_ODD,
    MANTISSAS,
    LARGEST_AT,
)
FUNCTIONS = {
    "exp": (-103.0, 88.7),
    "expm1": (-20.0, 88.7),
    "log": (1e-38, 1e4),
    "log1p": (-0.999, 1e4),
    "tanh": (-12.0, 12.0),
    "erf": (-5.0, 5.0),
}
ODD = [math.inf, -math.inf, math.nan, 0.0, 1e-42, -1e-42, 1e-6, 200.0, -200.0]


@pytest.fixture(scope="module")
def kernels() -> Library:
    loops = "".join(
        f'extern "C" void do_{name}(const float* x, float* y, int64_t n)\n{{\n'
        f"    for (int64_t i = 0; i < n; ++i) y[i] = branchless::{name}(x[i]);\n}}\n"
        for name in FUNCTIONS
    )
    texts = [with_vectors(text) for text in KERNELS]
    return cpp(cpp_source([*texts, loops]))


def test_a_sum_may_be_added_up_in_another_order() -> None:
    short = with_vectors(ROW_SUM.replace("x1<1001", "x1<100"))
    assert "            #pragma omp simd reduction(+:tmp_acc0)\n            for(int64_t x1" in short
    assert "branchless::exp(tmp0)" in short


def test_long_rows_are_added_up_in_lanes_and_what_is_left_of_them_is_vectors_too() -> None:
    marked = with_vectors(ROW_SUM)
    assert "for(int64_t x1=x1_block; x1<x1_block + 64; x1+=1)" in marked
    assert "for(int64_t x1=960; x1<1001; x1+=1)" in marked
    assert marked.count("#pragma omp simd\n") == 2 and "reduction" not in marked
    assert "tmp_acc0 = tmp_acc0 + in_one<64>(tmp_acc0_of," in marked
    whole = with_vectors(ROW_SUM.replace("x1<1001", "x1<960"))
    assert whole.count("#pragma omp simd\n") == 1


# What comes after a sum is more than a line.
NESTED = COLUMN_SUM.replace("out_ptr0[x0] =", "if (true) { out_ptr0[x0] =").replace(
    "acc0;", "acc0; }"
)


def test_where_neighbours_are_iterations_of_the_outer_loop_that_one_is_marked() -> None:
    marked = with_vectors(NESTED)
    assert "#pragma omp for simd\n        for(int64_t x0" in marked
    assert "reduction" not in marked


def test_loops_that_threads_share_out_together_stay_together() -> None:
    together = NESTED.replace(
        "        #pragma omp for\n        for(int64_t x0",
        "        #pragma omp for collapse(2)\n        for(int64_t x2=0; x2<3; x2+=1)\n        {\n"
        "        for(int64_t x0",
    )
    assert "simd" not in with_vectors(together)
    in_blocks = with_vectors(together.replace("if (true) {", "").replace("acc0; }", "acc0;"))
    assert "{\n        for(int64_t x0_block=0;" in in_blocks


def test_the_pragma_that_a_loop_has_gives_way() -> None:
    alone = NESTED.replace("#pragma omp for", "#pragma GCC ivdep")
    assert "ivdep" not in with_vectors(alone)
    assert "#pragma omp simd\n        for(int64_t x0" in with_vectors(alone)


def test_a_loop_without_sums_is_marked_where_the_compiler_found_no_conflict() -> None:
    loop = """    for(int64_t x0=0; x0<1001; x0+=1)
    {
        auto tmp0 = in_ptr0[x0];
        out_ptr0[x0] = tmp0;
    }
"""
    assert with_vectors(loop) == loop
    marked = with_vectors(f"    #pragma GCC ivdep\n{loop}")
    assert marked == f"    #pragma omp simd\n{loop}"


@pytest.mark.parametrize(
    ("alias", "moved"), [("", True), ("    auto out_ptr0 = in_ptr1;\n", False)]
)
def test_what_is_the_same_for_all_iterations_is_read_before_them(alias: str, moved: bool) -> None:
    loop = """    #pragma GCC ivdep
    for(int64_t x1=0; x1<1001; x1+=1)
    {
        auto tmp0 = in_ptr0[x1 + 1001L*x0];
        auto tmp1 = in_ptr1[x0];
        out_ptr0[x1 + 1001L*x0] = tmp0 + tmp1;
    }
"""
    marked = with_vectors(alias + loop)
    assert (marked.index("in_ptr1[x0]") < marked.index("for(")) == moved
    assert marked.count("in_ptr1[x0]") == 1 and "#pragma omp simd\n" in marked


def test_a_loop_around_threads_is_left_alone() -> None:
    around = SHARED_SUM.replace("    float tmp_acc0 = 0;\n", "").splitlines()
    inside = "\n".join(f"        {line}" for line in around[2:-2])
    text = "\n".join(
        ["{", "    for(int64_t x1=0; x1<12; x1+=1)", "    {", "        float tmp_acc0 = 0;"]
    )
    found = with_vectors(f"{text}\n{inside}\n    }}\n}}\n".replace("[x0]", "[x1 + 12L*x0]"))
    assert "simd" not in found


def test_a_long_sum_needs_no_chunks_in_double_precision() -> None:
    marked = with_vectors(LONG_SUM)
    assert "double tmp_acc0 = 0;" in marked and "ascade" not in marked
    assert "double tmp_acc0_of[64];" in marked


def test_threads_share_out_blocks_of_a_sum() -> None:
    marked = with_vectors(SHARED_SUM)
    assert (
        "#pragma omp for\n        for(int64_t x0_block=0; x0_block<37037; x0_block+=1024)" in marked
    )
    assert (
        "#pragma omp simd reduction(+:tmp_acc0_local)\n            for(int64_t x0=x0_block"
        in marked
    )


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("tmp_acc0 = tmp_acc0 + tmp1;", "tmp_acc0 = welford_combine(tmp_acc0, tmp1);"),
        ("auto tmp1 = std::exp(tmp0);", "atomic_add(&out_ptr1[tmp0], tmp0); auto tmp1 = tmp0;"),
        ("auto tmp1 = std::exp(tmp0);", "out_ptr1[tmp0] = tmp0; auto tmp1 = tmp0;"),
        ("auto tmp1 = std::exp(tmp0);", "out_ptr1[x0] = tmp0; auto tmp1 = tmp0;"),
        ("auto tmp1 = std::exp(tmp0);", "auto tmp1 = [&] { return tmp0; }();"),
    ],
)
def test_a_loop_whose_iterations_may_meet_is_left_alone(line: str, instead: str) -> None:
    assert "pragma" not in with_vectors(ROW_SUM.replace(line, instead))


def test_a_loop_over_distant_elements_is_left_alone_and_calls_the_library() -> None:
    apart = ROW_SUM.replace("x1 + 1001L*x0", "3L*x1 + 3003L*x0")
    assert with_vectors(apart) == apart


def test_a_condition_is_no_obstacle() -> None:
    masked = ROW_SUM.replace("std::exp(tmp0)", "x1 <= x0 && true ? std::exp(tmp0) : 0.0f")
    assert "auto& tmp_acc0 = tmp_acc0_of[" in with_vectors(masked)


def test_limited_values_are_vectors(tmp_path: Path) -> None:
    (tmp_path / "kernel.cpp").write_text(cpp_source([with_vectors(CLAMPED)]))
    toolchain = find_toolchain("cpp")
    if not toolchain.compiler.name.startswith("g++"):
        pytest.skip("only g++ says which loops became vectors")
    words = [*toolchain.command_prefix, "-fopt-info-vec-optimized", "-o", "kernel.so", "kernel.cpp"]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "loop vectorized" in ran.stderr


def test_limited_values_are_the_librarys(kernels: Library) -> None:
    x = torch.tensor([*ODD, -3.0, 2.0, 4.0]).repeat(4000)[: ROWS * COLUMNS]
    y = torch.empty_like(x)
    kernels.clamped(x, y)
    torch.testing.assert_close(y, torch.nn.functional.hardswish(x.relu()), equal_nan=True)


def test_reductions_are_right(kernels: Library) -> None:
    x = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(1))
    rows, columns, total = torch.empty(ROWS), torch.empty(COLUMNS), torch.empty(1)
    kernels.row_sum(x, rows)
    kernels.column_sum(x, columns)
    kernels.long_sum(x, total)
    torch.testing.assert_close(rows, x.exp().sum(1))
    torch.testing.assert_close(columns, x.sum(0))
    assert total.item() == pytest.approx(x.double().sum().item(), rel=1e-6)
    kernels.shared_sum(x, total)
    assert total.item() == pytest.approx(x.double().sum().item(), rel=1e-4)


@pytest.mark.parametrize("kind", ["float", "int64_t"])
def test_all_elements_are_divided_by_the_same_number_once(kind: str) -> None:
    loop = f"""void f(const {kind}* in_ptr1)
    #pragma GCC ivdep
    for(int64_t x1=0; x1<1001; x1+=1)
    {{
        auto tmp0 = in_ptr0[x1];
        auto tmp1 = in_ptr1[x0];
        auto tmp2 = tmp0 / tmp1;
        out_ptr0[x1] = tmp2;
    }}
"""
    marked = with_vectors(loop)
    assert ("auto tmp1_inverse = 1 / tmp1;" in marked) == (kind == "float")
    assert ("auto tmp2 = tmp0 * tmp1_inverse;" in marked) == (kind == "float")


def test_halves_go_through_buffers_of_floats(kernels: Library) -> None:
    text = with_vectors(HALVES)
    assert text.count("widen(in_ptr0 + (1001L*x0), in_ptr0_wide, 1001);") == 2
    assert "narrow(out_ptr1_rounded, out_ptr1 + (1001L*x0), 1001);" in text
    assert "convert<at::Half>" not in text
    x = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(6)).half()
    sums, y = torch.empty(ROWS), torch.empty(ROWS, COLUMNS, dtype=torch.half)
    kernels.halves(x, sums, y)
    torch.testing.assert_close(sums, x.float().sum(1))
    assert torch.equal(y, (x.float() * sums[:, None]).half())


def test_threads_share_out_blocks_of_halves(kernels: Library) -> None:
    text = with_vectors(SHARED_HALVES)
    assert (
        "#pragma omp for\n        for(int64_t x0_block=0; x0_block<37037; x0_block+=1024)" in text
    )
    assert "widen(in_ptr0 + (x0_block), in_ptr0_wide, x0_end - x0_block);" in text
    draw = torch.Generator().manual_seed(7)
    x, y = torch.randn(2, ROWS * COLUMNS, generator=draw).half()
    special = torch.tensor([0.0, -0.0, 1e-7, 6e-8, 1e-5, 65504, math.inf, -math.inf, math.nan])
    for at in (0, 700, len(x) - 9):  # within vectors, and in what is left
        x[at : at + 9], y[at : at + 9] = special.half(), 1
    expected = (x.float() / y.float()).half()
    kernels.shared_halves(x, y)
    torch.testing.assert_close(y, expected, rtol=0, atol=0, equal_nan=True)


@pytest.mark.parametrize(
    "line",
    [
        "out_ptr1[x1 + 1001L*x0] = decltype(tmp4)(tmp4);",
        "auto tmp5 = float(tmp4); out_ptr1[x1 + 1001L*x0] = tmp4;",
    ],
)
def test_halves_of_other_kinds_are_stored_as_they_are(line: str) -> None:
    text = with_vectors(HALVES.replace("out_ptr1[x1 + 1001L*x0] = tmp4;", line))
    assert "convert<at::Half>(tmp3)" in text


def test_whether_any_is_true_is_a_vector_of_words(kernels: Library) -> None:
    text = with_vectors(IS_ANY_ODD)
    assert "int32_t tmp_acc0 = 0;" in text and "int32_t tmp_acc0_of[64];" in text
    assert "auto tmp1 = whole_word(out_ptr0[x0]);" in text
    x = torch.randn(ROWS, COLUMNS)
    x[3, 999] = math.nan
    odd, kept = torch.empty(ROWS, dtype=torch.bool), torch.empty(ROWS, COLUMNS)
    kernels.is_any_odd(x, odd, kept)
    assert torch.equal(odd, x.isnan().any(1))
    assert torch.equal(kept, torch.where(odd[:, None], 0.0, x))


def test_mantissas_are_the_librarys(kernels: Library) -> None:
    assert "#pragma omp simd" in with_vectors(MANTISSAS)
    draw = torch.Generator().manual_seed(4)
    x = (
        torch.randn(ROWS * COLUMNS, generator=draw)
        * torch.empty(ROWS * COLUMNS).uniform_(-146, 127, generator=draw).exp2()
    )
    x[: len(ODD)] = torch.tensor(ODD)
    mantissas, powers = torch.empty_like(x), torch.empty(len(x), dtype=torch.int32)
    kernels.mantissas(x, mantissas, powers)
    expected = torch.frexp(x)
    torch.testing.assert_close(mantissas, expected.mantissa, equal_nan=True, rtol=0, atol=0)
    finite = x.isfinite()  # of others the power is anything
    assert torch.equal(powers[finite], expected.exponent[finite])


@pytest.mark.parametrize("odd", [math.nan, math.inf, -math.inf])
def test_the_place_of_the_largest_is_the_librarys(kernels: Library, odd: float) -> None:
    x = torch.randint(-9, 9, (ROWS, COLUMNS), generator=torch.Generator().manual_seed(5)).float()
    x[4, 7], x[4, 700], x[5] = odd, odd, odd
    places = torch.empty(ROWS, dtype=torch.int64)
    kernels.largest_at(x, places)
    assert torch.equal(places, x.argmax(1))


@pytest.mark.parametrize("at", [0, 500, COLUMNS - 1])
def test_extremes_are_right_and_a_nan_wins(kernels: Library, at: int) -> None:
    x = torch.randn(ROWS, COLUMNS, generator=torch.Generator().manual_seed(2))
    x[5, at] = math.nan
    largest, smallest = torch.empty(ROWS), torch.empty(ROWS)
    kernels.extremes(x, largest, smallest)
    torch.testing.assert_close(largest, x.amax(1), equal_nan=True, rtol=0, atol=0)
    torch.testing.assert_close(smallest, x.amin(1), equal_nan=True, rtol=0, atol=0)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_functions_err_by_two_units_in_the_last_place_at_most(kernels: Library, name: str) -> None:
    low, high = FUNCTIONS[name]
    draw = torch.Generator().manual_seed(3)
    spread = torch.empty(200_000).uniform_(low, high, generator=draw)
    x = torch.cat([spread, torch.randn(200_000, generator=draw).abs() if low > 0 else spread / 50])
    y = torch.empty_like(x)
    getattr(kernels, f"do_{name}")(x, y, len(x))
    exact = getattr(torch, name)(x.double())
    rounded = exact.float().abs()
    unit = torch.nextafter(rounded, torch.tensor(math.inf)).double() - rounded.double()
    ordinary = rounded > 1.2e-38
    assert ((y.double() - exact).abs() / unit)[ordinary].max() < 2


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_functions_of_odd_numbers_are_the_librarys(kernels: Library, name: str) -> None:
    x = torch.tensor(ODD)
    y = torch.empty_like(x)
    getattr(kernels, f"do_{name}")(x, y, len(x))
    torch.testing.assert_close(y, getattr(torch, name)(x), equal_nan=True, rtol=1e-6, atol=1e-44)
