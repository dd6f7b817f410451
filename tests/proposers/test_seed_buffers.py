"""Buffers are made in the shape in which they are seen, where that is one."""

import ast

import pytest

from kernel_smith.proposers.seed.buffers import made_as_seen

COLUMN = "buf0 = empty_strided_cpu((256, 1), (1, 256), torch.float32)\n"
ROW = "empty_strided_cpu((256,), (1,), torch.float32)"


def rewritten(text: str) -> list[str]:
    return [ast.unparse(one) for one in made_as_seen(ast.parse(text).body, {"kernel"})]


def test_a_view_that_is_all_there_is_to_see_is_made_at_once() -> None:
    view = "buf1 = reinterpret_tensor(buf0, (256,), (1,), 0)\ndel buf0\n"
    assert rewritten(COLUMN + view + "kernel(buf1, x)\nreturn (buf1,)") == [
        f"buf1 = {ROW}",
        "kernel(buf1, x)",
        "return (buf1,)",
    ]


def test_kernels_see_no_shape() -> None:
    use = "kernel(buf0, x)\nkernel.run(buf0, 3, stream=stream0)\n"
    returned = "return (reinterpret_tensor(buf0, (256,), (1,), 0), x)"
    assert rewritten(COLUMN + use + returned) == [
        f"buf0 = {ROW}",
        "kernel(buf0, x)",
        "kernel.run(buf0, 3, stream=stream0)",
        "return (buf0, x)",
    ]


def test_what_only_kernels_see_is_plain() -> None:
    made, *_ = rewritten(COLUMN + "kernel(buf0, x)\ndel buf0")
    assert made == "buf0 = empty_strided_cpu((256, 1), (1, 1), torch.float32)"


def test_statements_within_a_guard_are_rewritten_too() -> None:
    [guard] = rewritten(
        "with guard(0):\n"
        "    buf0 = empty_strided_cuda((8, 1), (1, 8), torch.float32)\n"
        "    kernel.run(buf0)\n"
        "    return (reinterpret_tensor(buf0, (8,), (1,), 0),)"
    )
    assert "reinterpret_tensor" not in guard
    assert "return (buf0,)" in guard


def test_memory_that_is_used_again_has_one_name() -> None:
    text = f"buf0 = {ROW}\nlibrary(buf0)\nbuf1 = buf0\ndel buf0  # reuse\nkernel(buf1)"
    assert rewritten(text) == [f"buf1 = {ROW}", "library(buf1)", "kernel(buf1)"]


def test_the_last_of_several_names_stays() -> None:
    again = "buf1 = buf0\ndel buf0\nkernel(buf1)\nbuf2 = buf1\ndel buf1\nreturn (buf2,)"
    assert rewritten(f"buf0 = {ROW}\nlibrary(buf0)\n{again}") == [
        f"buf2 = {ROW}",
        "library(buf2)",
        "kernel(buf2)",
        "return (buf2,)",
    ]


@pytest.mark.parametrize(
    "use",
    [
        "library(buf0)\nkernel(reinterpret_tensor(buf0, (256,), (1,), 0))",
        "kernel(reinterpret_tensor(buf0, (128,), (1,), 0))",
        "kernel(reinterpret_tensor(buf0, (255,), (1,), 1))",
        "kernel(reinterpret_tensor(buf0, (2, 256), (0, 1), 0))",
        "kernel(reinterpret_tensor(buf0, (256,), (1,), 0))\n"
        "kernel(reinterpret_tensor(buf0, (16, 16), (16, 1), 0))",
        "kernel(buf0.stride(1))\nkernel(reinterpret_tensor(buf0, (256,), (1,), 0))",
        "buf1 = buf0\nkernel(buf0)\ndel buf0",
    ],
    ids=["library", "part", "offset", "repeated", "two-shapes", "asked", "both-names"],
)
def test_what_is_seen_in_another_way_stays(use: str) -> None:
    text = COLUMN + use
    assert rewritten(text) == [ast.unparse(one) for one in ast.parse(text).body]
