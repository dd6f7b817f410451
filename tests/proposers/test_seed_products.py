"""Kernels of our own for products: what they compute, and when they take a library call's place."""

from __future__ import annotations

import ast

import pytest
import torch

from kernel_smith.inline import Library, cpp
from kernel_smith.proposers.seed.cpp_text import cpp_source
from kernel_smith.proposers.seed.own_cpp import CppKernels

# rows, inner, columns: edges of tiles, few rows, more than is packed at once, crowded rows
SIZES = [
    *((1, 7, 5), (3, 300, 33), (23, 37, 66), (29, 17, 65)),
    *((64, 64, 64), (37, 600, 31), (25, 512, 40), (70, 321, 50)),
]
CALLS = ["mm(a, b, out=buf0)", "addmm(bias, a, b, alpha=1, beta=1, out=buf0)"]
TYPES = {"torch.float32": torch.float32, "torch.float64": torch.float64}

MULTIPLY = """
assert_size_stride(a, {a_size}, {a_stride})
assert_size_stride(b, {b_size}, {b_stride})
assert_size_stride(bias, ({columns},), (1,))
buf0 = empty_strided_cpu({c_size}, {c_stride}, {dtype})
extern_kernels.{call}
"""


def drawn(size: tuple[int, ...], dtype: torch.dtype, *, transposed: bool) -> torch.Tensor:
    if not transposed:
        return torch.randn(size, dtype=dtype)
    return torch.randn(*size[:-2], size[-1], size[-2], dtype=dtype).mT


def written(a: torch.Tensor, b: torch.Tensor, call: str, dtype: str) -> tuple[str, str]:
    """The kernel's name and text for a call on tensors that lie like these."""
    c = torch.empty(*a.shape[:-1], b.shape[-1])
    text = MULTIPLY.format(
        a_size=tuple(a.shape),
        a_stride=a.stride(),
        b_size=tuple(b.shape),
        b_stride=b.stride(),
        c_size=tuple(c.shape),
        c_stride=c.stride(),
        columns=b.shape[-1],
        dtype=dtype,
        call=call,
    )
    body = ast.parse(text).body
    own = CppKernels(body, {})
    launch = own.replace(body[-1], lambda argument: argument)
    ((name, text),) = own.texts.items()
    assert launch is not None and ast.unparse(launch[0]).startswith(f"kernels.{name}(")
    return name, text


def kernels_of(texts: dict[str, str]) -> Library:
    return cpp(cpp_source(list(texts.values())))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("layout", "dtype"),
    [
        ("plain", "torch.float32"),
        ("both transposed", "torch.float64"),
        pytest.param("both transposed", "torch.float32", marks=pytest.mark.sweep),
        pytest.param("a transposed", "torch.float64", marks=pytest.mark.sweep),
        pytest.param("a transposed", "torch.float32", marks=pytest.mark.sweep),
        pytest.param("b transposed", "torch.float32", marks=pytest.mark.sweep),
    ],
)
def test_a_product_is_the_librarys(layout: str, dtype: str) -> None:
    """By either call, one after the other but for the plain layout."""
    tests, texts = [], {}
    for rows, inner, columns in SIZES[::2] if dtype == "torch.float64" else SIZES:
        a = drawn((rows, inner), TYPES[dtype], transposed=layout[0] == "a" or "both" in layout)
        b = drawn((inner, columns), TYPES[dtype], transposed=layout[0] == "b")
        for call in CALLS if layout == "plain" else CALLS[len(tests) % 2 :][:1]:
            name, text = written(a, b, call, dtype)
            texts[name] = text
            tests.append((name, a, b))
    kernels = kernels_of(texts)
    for name, a, b in tests:
        bias = torch.randn(b.shape[1], dtype=a.dtype)
        c = torch.full((a.shape[0], b.shape[1]), torch.nan, dtype=a.dtype)
        if "and_add" in name:
            getattr(kernels, name)(bias, _flat(a), _flat(b), c)
            torch.testing.assert_close(c, torch.addmm(bias, a, b), rtol=1e-4, atol=1e-4)
        else:
            getattr(kernels, name)(_flat(a), _flat(b), c)
            torch.testing.assert_close(c, a @ b, rtol=1e-4, atol=1e-4)


def _flat(tensor: torch.Tensor) -> torch.Tensor:
    """The same memory; a kernel knows itself how the elements lie."""
    return tensor if tensor.is_contiguous() else tensor.mT


@pytest.mark.parametrize("size", [(40, 6, 6, 6), (3, 13, 64, 9)])
def test_many_products_at_once(size: tuple[int, int, int, int]) -> None:
    batch, rows, inner, columns = size
    a, b = torch.randn(batch, rows, inner), torch.randn(batch, inner, columns)
    name, text = written(a, b, "bmm(a, b, out=buf0)", "torch.float32")
    c = torch.empty(batch, rows, columns)
    getattr(kernels_of({name: text}), name)(a, b, c)
    torch.testing.assert_close(c, torch.bmm(a, b), rtol=1e-4, atol=1e-4)


GRAMS = [(1, 600, 53, False), (1, 300, 53, True), (1, 257, 24, False), (3, 40, 17, False)]


@pytest.mark.parametrize(
    "dtype", ["torch.float32", pytest.param("torch.float64", marks=pytest.mark.sweep)]
)
def test_a_matrix_times_its_own_transpose_is_computed_once_on_each_side(dtype: str) -> None:
    """Batch, rows, columns, and whether its columns are in one piece."""
    texts, xs = {}, []
    for batch, rows, columns, transposed in GRAMS:
        x = drawn((batch, rows, columns), TYPES[dtype], transposed=transposed)
        name, text = gram_of(x, dtype)
        texts[name] = text
        xs.append(x)
    assert all("Gram<" in text for text in texts.values())
    kernels = kernels_of(texts)
    for name, x in zip(texts, xs, strict=True):
        c = torch.full((x.shape[0], x.shape[2], x.shape[2]), torch.nan, dtype=x.dtype)
        getattr(kernels, name)(_flat(x), c)
        torch.testing.assert_close(c, x.mT @ x, rtol=1e-4, atol=1e-4)


def gram_of(x: torch.Tensor, dtype: str) -> tuple[str, str]:
    batch, _, columns = x.shape
    text = (
        f"assert_size_stride(x, {tuple(x.shape)}, {x.stride()})\n"
        f"buf0 = empty_strided_cpu(({batch}, {columns}, {columns}), "
        f"({columns**2}, {columns}, 1), {dtype})\n"
        f"extern_kernels.bmm(reinterpret_tensor(x, {tuple(x.mT.shape)}, {x.mT.stride()}, 0), x, "
        "out=buf0)"
    )
    body = ast.parse(text).body
    own = CppKernels(body, {})
    assert own.replace(body[-1], lambda argument: argument) is not None
    ((name, text),) = own.texts.items()
    return name, text


def test_a_matrix_times_another_of_the_same_layout_is_no_gram_matrix() -> None:
    x = torch.randn(40, 17)
    name, text = written(x.mT, x, "mm(a, b, out=buf0)", "torch.float32")
    assert "Gram<" not in text and name == "multiply_17x40x17"


@pytest.mark.parametrize(
    "call",
    [
        "addmm(bias, a, b, alpha=2, beta=1, out=buf0)",
        "mm(a, unknown, out=buf0)",
        "mm(a, b)",
        "sort(a, out=buf0)",
    ],
)
def test_what_has_no_kernel_of_ours_stays_with_the_library(call: str) -> None:
    text = MULTIPLY.format(
        a_size=(2, 2),
        a_stride=(2, 1),
        b_size=(2, 2),
        b_stride=(2, 1),
        c_size=(2, 2),
        c_stride=(2, 1),
        columns=2,
        dtype="torch.float32",
        call=call,
    )
    body = ast.parse(text).body
    assert CppKernels(body, {}).replace(body[-1], lambda argument: argument) is None
    half = ast.parse(text.replace("float32", "bfloat16").replace(call, "mm(a, b, out=buf0)")).body
    assert CppKernels(half, {}).replace(half[-1], lambda argument: argument) is None
