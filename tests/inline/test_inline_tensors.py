"""Tensors that a kernel would misread, or read beyond the end of, are refused before the call."""

from collections.abc import Callable

import pytest
import torch

from kernel_smith.inline.library import Library

KERNELS = r"""
#include <cstdint>

extern "C" void doubled(const float* x, float* y, int64_t n) {
    for (int64_t i = 0; i < n; ++i) y[i] = 2 * x[i];
}
extern "C" void by_strides(const float* x, float* y, int64_t rows, int64_t columns,
                           int64_t row_stride, int64_t column_stride) {
    for (int64_t r = 0; r < rows; ++r)
        for (int64_t c = 0; c < columns; ++c)
            y[r * columns + c] = x[r * row_stride + c * column_stride];
}
extern "C" float sum_of_four(const float x[4]) { return x[0] + x[1] + x[2] + x[3]; }
extern "C" int64_t first_bits(const uint16_t* x) { return x[0]; }
extern "C" int64_t first_byte(const void* x) { return *static_cast<const uint8_t*>(x); }
"""


@pytest.fixture(scope="module")
def kernels(compile_library: Callable[[str], Library]) -> Library:
    return compile_library(KERNELS)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float64, torch.int32])
def test_elements_of_another_type_are_refused(kernels: Library, dtype: torch.dtype) -> None:
    name = str(dtype).removeprefix("torch.")
    y = torch.empty(8)
    with pytest.raises(TypeError, match=rf"argument 1 \('x'\) of doubled: .*got one of {name}"):
        kernels.doubled(torch.ones(8).to(dtype), y, 8)
    with pytest.raises(TypeError, match=r"argument 2 \('y'\).*its prototype is: void doubled"):
        kernels.doubled(y, torch.ones(8).to(dtype), 8)


def test_complex_numbers_are_pairs_of_floating_point_numbers(kernels: Library) -> None:
    x = torch.tensor([1 + 2j, 3 - 4j])
    y = torch.empty_like(x)
    kernels.doubled(x, y, 4)
    assert torch.equal(y, 2 * x)


def test_integers_take_the_bits_of_any_type_of_their_width(kernels: Library) -> None:
    x = torch.tensor([1.0])
    assert kernels.first_bits(x.bfloat16()) == 0x3F80
    assert kernels.first_bits(x.half()) == 0x3C00
    with pytest.raises(TypeError, match="got one of float32"):
        kernels.first_bits(x)


def test_a_pointer_to_void_takes_every_type(kernels: Library) -> None:
    for dtype in (torch.uint8, torch.float64, torch.int16):
        assert kernels.first_byte(torch.tensor([3]).to(torch.uint8).view(torch.uint8)) == 3
        kernels.first_byte(torch.ones(1, dtype=dtype))


def test_repeated_elements_are_refused(kernels: Library) -> None:
    y = torch.empty(4, 4)
    with pytest.raises(TypeError, match=r"shape \(4, 4\) with strides \(0, 1\); call .contiguous"):
        kernels.doubled(torch.ones(4).expand(4, 4), y, 16)


def test_elements_with_gaps_are_refused_unless_the_kernel_gets_the_strides(
    kernels: Library,
) -> None:
    x = torch.arange(24.0).reshape(4, 6)[:, ::2]
    y = torch.empty(4, 3)
    with pytest.raises(TypeError, match=r"argument 1 \('x'\) of doubled: expected elements that"):
        kernels.doubled(x, y, 12)
    kernels.by_strides(x, y, 4, 3, *x.stride())
    assert torch.equal(y, x)


@pytest.mark.parametrize("memory_format", [torch.contiguous_format, torch.channels_last])
def test_a_kernel_may_know_the_order_of_dense_elements(
    kernels: Library, memory_format: torch.memory_format
) -> None:
    x = torch.randn(2, 3, 4, 5).to(memory_format=memory_format)
    y = torch.empty_like(x)
    kernels.doubled(x, y, x.numel())
    assert torch.equal(y, 2 * x)
    turned = torch.empty(4, 2).t()
    kernels.doubled(torch.ones(2, 4).t().t(), turned, 8)
    assert torch.equal(turned, torch.full((2, 4), 2.0))


def test_an_array_parameter_asks_for_its_elements(kernels: Library) -> None:
    assert kernels.sum_of_four(torch.ones(5)) == 4
    with pytest.raises(TypeError, match="at least 4 elements, got 3"):
        kernels.sum_of_four(torch.ones(3))


def test_an_empty_tensor_is_a_tensor(kernels: Library) -> None:
    kernels.doubled(torch.empty(0), torch.empty(0), 0)
