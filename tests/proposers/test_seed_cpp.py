"""C++ seeds: kernels read from Inductor's text, and the helpers that stand in for its headers."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
import torch

from kernel_smith.inline import Library, cpp
from kernel_smith.inline.toolchain import find_toolchain
from kernel_smith.proposers.seed.cpp_helpers import helpers_for
from kernel_smith.proposers.seed.cpp_text import cpp_source, read_cpp_kernel

KERNEL = """
#include <torch/csrc/inductor/cpp_prefix.h>
extern "C"  void  kernel(const float* in_ptr0,
                       float* out_ptr0)
{
    std::atomic<int> inductor_cpu_integer_div_error{0};
    inductor_cpu_integer_div_error_flag = &inductor_cpu_integer_div_error;
    for(int64_t x0=static_cast<int64_t>(0L); x0<static_cast<int64_t>(16L); x0+=static_cast<int64_t>(1L))
    {
        auto tmp0 = in_ptr0[static_cast<int64_t>((3L*x0) + std::max(static_cast<int64_t>(0L), x0))];
        out_ptr0[static_cast<int64_t>(x0)] = tmp0;
    }
    inductor_cpu_integer_div_error_flag = nullptr;
    inductor_cpu_throw_if_integer_div_error(inductor_cpu_integer_div_error);
}
"""  # noqa: E501

HELPED = r"""
extern "C" void rounded(const float* x, uint16_t* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) {
        const bfloat16 value = static_cast<bfloat16>(x[i]);
        std::memcpy(y + i, &value, 2);
    }
}
extern "C" void halved(const float* x, half* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<half>(x[i]);
}
extern "C" void widened(const half* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = static_cast<float>(x[i]);
}
extern "C" void moments(const float* x, float* y, int64_t n) {
    Welford<float> left, right;
    WelfordHelper<float, 64> helper(n);
    for (int64_t i = 0; i < n / 3; ++i) left = welford_combine(left, x[i], &helper);
    left = welford_combine(left, &helper);
    for (int64_t i = n / 3; i < n; ++i) right = welford_combine(right, x[i]);
    const auto both = welford_combine(left, right);
    y[0] = both.mean;
    y[1] = both.m2;
}
extern "C" void total(const float* x, float* y, int64_t n) {
    CascadeSumHelper<float, 4096> helper(n);
    float sum = 0;
    for (int64_t i = 0; i < n; ++i) sum = cascade_sum_combine(x[i], &helper);
    y[0] = cascade_sum_final(&helper);
}
extern "C" void places(const float* x, int64_t* y, int64_t n) {
    IndexValue<float> most(0, -std::numeric_limits<float>::infinity());
    IndexValue<float> least(0, std::numeric_limits<float>::infinity());
    for (int64_t i = 0; i < n; ++i) {
        most = argmax_combine(most, x[i], i);
        least = argmin_combine(least, x[i], i);
    }
    y[0] = most.index;
    y[1] = least.index;
}
extern "C" int64_t floored(int64_t a, int64_t b) { return floor_divide_integral(a, b); }
extern "C" float larger(float a, float b) { return max_propagate_nan(a, b); }
extern "C" float smaller(float a, float b) { return min_propagate_nan(a, b); }
"""


@pytest.fixture(scope="module")
def helped() -> Library:
    return cpp(cpp_source([HELPED]))


def test_a_kernel_gets_its_name_and_loses_headers_guards_and_casts() -> None:
    text = read_cpp_kernel("cpp_fused_0", KERNEL)
    assert text.startswith('extern "C" void cpp_fused_0(const float* in_ptr0, float* out_ptr0)')
    assert "include" not in text and "inductor" not in text
    assert "for(int64_t x0=0; x0<16; x0+=1)" in text
    assert "out_ptr0[x0] = tmp0" in text
    # In std::max both sides need the same type.
    assert "in_ptr0[(3L*x0) + std::max(static_cast<int64_t>(0L), x0)]" in text


def test_the_rewritten_kernel_still_does_its_work() -> None:
    x, y = torch.arange(64.0), torch.empty(16)
    cpp(cpp_source([read_cpp_kernel("pick", KERNEL)])).pick(x, y)
    assert torch.equal(y, x[::4])


ROOM = """
extern "C" void doubled(const float* x, float* y, int64_t n) {
    std::unique_ptr<float []> buffer = std::make_unique<float []>(n);
    float* room = buffer.get();
    for (int64_t i = 0; i < n; ++i) room[i] = 2 * x[i];
    for (int64_t i = 0; i < n; ++i) y[i] = room[i];
}
"""


def test_a_kernel_may_take_room_for_itself() -> None:
    """As the compiler's do for a softmax of long rows."""
    x, y = torch.arange(64.0), torch.empty(64)
    cpp(cpp_source([ROOM])).doubled(x, y, len(x))
    assert torch.equal(y, 2 * x)


def test_a_seed_carries_only_the_helpers_it_uses() -> None:
    assert "struct" not in helpers_for("float y = std::exp(x);")
    structs = re.findall(r"struct (\w+)", helpers_for("Welford<float> a;"))
    assert structs == ["Welford", "WelfordHelper"]


@pytest.mark.parametrize(
    ("used", "carried"),
    [("exp", {"exp"}), ("erf", {"exp", "erf"}), ("log", {"log"}), ("frexp", {"frexp"})],
)
def test_a_seed_carries_only_the_functions_it_calls(used: str, carried: set[str]) -> None:
    """Models read what tuners and mutators do not mind: every line is paid for in each prompt."""
    text = cpp_source([f"void f(float* x) {{ x[0] = branchless::{used}(x[0]); }}"])
    functions = ("exp", "log", "tanh", "erf", "frexp")
    assert {name for name in functions if f"inline float {name}(" in text} == carried
    assert "same_bits(" in text


def test_narrow_types_round_as_torch_does(helped: Library) -> None:
    special = [0.0, -0.0, 1.0, 65504.0, 1e-7, float("inf"), float("-inf"), float("nan"), 1.00390625]
    x = torch.cat([torch.tensor(special), torch.randn(1000) * 100])
    rounded = torch.empty(len(x), dtype=torch.bfloat16)
    helped.rounded(x, rounded, len(x))
    assert torch.equal(rounded.nan_to_num(7.0), x.bfloat16().nan_to_num(7.0))
    halved = torch.empty(len(x), dtype=torch.float16)
    helped.halved(x, halved, len(x))
    assert torch.equal(halved.nan_to_num(7.0), x.half().nan_to_num(7.0))


def test_all_halves_are_what_torch_says_both_ways(helped: Library) -> None:
    every = torch.arange(65536, dtype=torch.int32).to(torch.int16).view(torch.float16)
    wide, back = torch.empty(65536), torch.empty(65536, dtype=torch.float16)
    helped.widened(every, wide, 65536)
    assert torch.equal(wide.nan_to_num(7.0), every.float().nan_to_num(7.0))
    between = torch.cat([wide, torch.nextafter(wide, torch.tensor(0.0)), wide * 1.000244140625])
    for x in between.split(65536):  # the numbers themselves, and what lies beside and between them
        helped.halved(x.contiguous(), back, 65536)
        assert torch.equal(back.nan_to_num(7.0), x.half().nan_to_num(7.0))


@pytest.mark.parametrize("kind", ["at::Half", "at::BFloat16"])
def test_loops_over_narrow_types_become_vectors(kind: str, tmp_path: Path) -> None:
    text = f"""extern "C" void scale(const {kind}* in_ptr0, {kind}* out_ptr0)
{{
    #pragma GCC ivdep
    for(int64_t x0=0; x0<1024; x0+=1)
    {{
        auto tmp0 = in_ptr0[x0];
        auto tmp1 = c10::convert<float>(tmp0);
        auto tmp2 = tmp1 * 3;
        auto tmp3 = c10::convert<{kind}>(tmp2);
        out_ptr0[x0] = tmp3;
    }}
}}
"""
    (tmp_path / "kernel.cpp").write_text(cpp_source([read_cpp_kernel("scale", text)]))
    toolchain = find_toolchain("cpp")
    if not toolchain.compiler.name.startswith("g++"):
        pytest.skip("only g++ says which loops became vectors")
    words = [*toolchain.command_prefix, "-fopt-info-vec-optimized", "-o", "kernel.so", "kernel.cpp"]
    ran = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "loop vectorized" in ran.stderr


def test_moments_and_sums_are_those_of_torch(helped: Library) -> None:
    x, y = torch.randn(10_000) + 3, torch.empty(2)
    helped.moments(x, y, len(x))
    wanted = torch.stack([x.double().mean(), x.double().var() * (len(x) - 1)])
    torch.testing.assert_close(y.double(), wanted, rtol=1e-4, atol=0)
    helped.total(x, y, len(x))
    torch.testing.assert_close(y[0].double(), x.double().sum(), rtol=1e-5, atol=0)


@pytest.mark.parametrize(
    "values",
    [[1.0, 3.0, 3.0, 0.0, 0.0], [1.0, float("nan"), 9.0, float("nan")], [float("-inf")] * 3],
)
def test_the_first_of_equals_wins_and_nan_wins_over_all(
    helped: Library, values: list[float]
) -> None:
    x, y = torch.tensor(values), torch.empty(2, dtype=torch.int64)
    helped.places(x, y, len(x))
    assert y.tolist() == [x.argmax().item(), x.argmin().item()]


def test_integer_division_floors_and_extremes_keep_nan(helped: Library) -> None:
    for a, b in ((7, 2), (-7, 2), (7, -2), (-8, 2), (0, 3)):
        assert helped.floored(a, b) == a // b
    for pair in ((1.0, float("nan")), (float("nan"), 1.0)):
        assert helped.larger(*pair) != helped.larger(*pair)
        assert helped.smaller(*pair) != helped.smaller(*pair)
    assert (helped.larger(1.0, 2.0), helped.smaller(1.0, 2.0)) == (2.0, 1.0)
