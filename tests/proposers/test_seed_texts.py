"""The pure parts of seeding: reading generated modules, and rewriting kernels and wrappers."""

from __future__ import annotations

import ast
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.errors import BadInput
from kernel_smith.proposers.seed.generated import read_generated
from kernel_smith.proposers.seed.library_calls import contiguous_strides
from kernel_smith.proposers.seed.triton_clean import clean
from kernel_smith.proposers.seed.triton_text import Config, TritonKernel, read_triton_kernel
from kernel_smith.proposers.seed.wrapper import Body, rewrite

# As written by torch 2.11 and 2.13, shortened.
KERNEL = """
import triton
import triton.language as tl

from torch._inductor.runtime import triton_helpers, triton_heuristics
from torch._inductor.runtime.triton_helpers import libdevice, math as tl_math
triton_helpers.set_driver_to_gpu()

@triton.jit
def _triton_helper_fn_add0(arg0_0, arg1_0):
    tmp0 = arg0_0 + arg1_0
    return tmp0

@triton_heuristics.pointwise(
    size_hints={'x': 4096},
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*fp32', 'xnumel': 'i32'}, 'constants': {}},
    inductor_meta={'grid_type': 'Grid1D', 'autotune_hints': set(), 'kernel_name': 'triton_poi_0'},
    min_elem_per_thread=0
)
@triton.jit
def triton_poi_0(in_ptr0, out_ptr0, xnumel, XBLOCK : tl.constexpr):
    xnumel = 4000
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:]
    tmp0 = tl.load(in_ptr0 + (xindex), xindex < xnumel)
    tmp1 = libdevice.sqrt(tl_math.abs(libdevice.tanh(tmp0)))
    tmp2 = tl.associative_scan((tmp1,), 0, _triton_helper_fn_add0)
    tl.store(out_ptr0 + (xindex), libdevice.exp(tmp1), xindex < xnumel)
"""

CALL = """
arg0_1, arg1_1 = args
args.clear()
assert_size_stride(arg0_1, (40, 100), (100, 1), 'input')
with torch.cuda._DeviceGuard(0):
    torch.cuda.set_device(0)
    arg0_1 = copy_if_misaligned(arg0_1)
    buf0 = empty_strided_cuda((40, 100), (100, 1), torch.float32)
    extern_kernels.mm(arg0_1, reinterpret_tensor(arg1_1, (100, 100), (1, 100), 7), out=buf0)
    assert_size_stride(buf0, (40, 1, 100), (100, 5, 1), 'torch.ops.aten.mm')
    buf1 = empty_strided_cuda((40, 100), (1, 40), torch.float32)
    stream0 = get_raw_stream(0)
    triton_poi_0.run(buf0, buf1, 4000, stream=stream0)
    del arg0_1
    del buf0
return (reinterpret_tensor(buf1, (4000, ), (1, ), 5), )
"""


def module(call: str) -> str:
    return f"triton_poi_0 = async_compile.triton('triton_poi_0', '''{KERNEL}''')\n{call}"


def indented(text: str, depth: int) -> str:
    return "".join(f"{'    ' * depth}{line}\n" for line in text.splitlines())


def rewritten(statements: str, kernels: set[str] | None = None) -> Body:
    names = {"arg0_1": "x", "arg1_1": "weight"}
    launch = read_triton_kernel("triton_poi_0", KERNEL).launch
    config = Config({"XBLOCK": 256}, 4, 1)
    body = ast.parse(f"def call(args):\n{indented(statements, 1)}").body[0]
    assert isinstance(body, ast.FunctionDef)
    return rewrite(body.body, names, kernels or set(), lambda name, given: launch(given, config))


@pytest.mark.parametrize(
    "code",
    [
        module(f"def call(args):\n{indented(CALL, 1)}"),
        module(f"class Runner:\n    def call(self, args):\n{indented(CALL, 2)}"),
    ],
)
def test_both_shapes_of_generated_modules_are_read(code: str) -> None:
    generated = read_generated(code)
    assert generated.arguments == ["arg0_1", "arg1_1"]
    assert generated.kernels == {"triton_poi_0": KERNEL}


def test_an_unknown_way_to_make_kernels_is_refused() -> None:
    with pytest.raises(BadInput, match="multi_kernel"):
        read_generated("k = async_compile.multi_kernel('k', [a, b])\ndef call(args): pass")


def test_a_triton_kernel_loses_everything_but_its_code() -> None:
    kernel = read_triton_kernel("triton_poi_0", KERNEL)
    functions = ast.parse(kernel.text).body
    assert [f.name for f in functions if isinstance(f, ast.FunctionDef)] == [
        "triton_poi_0_add0",
        "triton_poi_0",
    ]
    assert "heuristics" not in kernel.text and "import" not in kernel.text
    assert "(tmp1,), 0, triton_poi_0_add0)" in kernel.text
    assert kernel.parameters == ("in_ptr0", "out_ptr0", "xnumel")
    assert kernel.blocks == ("XBLOCK",)


LOOP = """
def triton_0(in_ptr0, out_ptr0, xnumel, r0_numel, XBLOCK : tl.constexpr, R0_BLOCK: tl.constexpr):
    xnumel = 64
    r0_numel = 5000
    rnumel = r0_numel
    RBLOCK: tl.constexpr = R0_BLOCK
    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]
    xmask = tl.full([XBLOCK], True, tl.int1)[:, None]
    total = tl.full([XBLOCK, R0_BLOCK], 0, tl.float32)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK):
        r0_index = r0_offset + tl.arange(0, R0_BLOCK)[None, :]
        r0_mask = r0_index < r0_numel
        roffset = r0_offset
        rindex = r0_index
        unused = tl.atomic_add(out_ptr0, 1)
        total += tl.load(in_ptr0 + 5000*xindex + r0_index, r0_mask, other=0.0)
    for r0_offset in tl.range(0, r0_numel, R0_BLOCK, num_stages=2):
        tl.store(out_ptr0 + xindex, tl.sum(total, 1)[:, None])
"""


def test_a_kernel_can_be_worked_on() -> None:
    """Sizes are constants, loops are plain, and what nobody reads is gone; what acts stays."""
    assert clean(LOOP.strip()).splitlines() == [
        "def triton_0(in_ptr0, out_ptr0, xnumel: tl.constexpr, r0_numel: tl.constexpr, "
        "XBLOCK : tl.constexpr, R0_BLOCK: tl.constexpr):",
        "    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)[:, None]",
        "    total = tl.full([XBLOCK, R0_BLOCK], 0, tl.float32)",
        "    for r0_offset in range(0, r0_numel, R0_BLOCK):",
        "        r0_index = r0_offset + tl.arange(0, R0_BLOCK)[None, :]",
        "        r0_mask = r0_index < r0_numel",
        "        unused = tl.atomic_add(out_ptr0, 1)",
        "        total += tl.load(in_ptr0 + 5000*xindex + r0_index, r0_mask, other=0.0)",
        "    for r0_offset in tl.range(0, r0_numel, R0_BLOCK, num_stages=2):",
        "        tl.store(out_ptr0 + xindex, tl.sum(total, 1)[:, None])",
    ]


def test_functions_of_the_language_replace_those_of_libdevice() -> None:
    text = read_triton_kernel("triton_poi_0", KERNEL).text
    assert "tl.sqrt_rn(tl.abs(libdevice.tanh(tmp0)))" in text
    assert "tl.exp(tmp1)" in text


def test_a_template_is_refused() -> None:
    template = KERNEL.replace("triton_heuristics.pointwise", "triton_heuristics.template")
    with pytest.raises(BadInput, match="template"):
        read_triton_kernel("triton_poi_0", template)


def launched(grid_type: str, sizes: dict[str, int], blocks: dict[str, int]) -> tuple[int, ...]:
    """The grid that a launch computes."""
    kernel = TritonKernel("k", "", tuple(sizes), tuple(blocks), grid_type)
    call = kernel.launch([ast.Constant(size) for size in sizes.values()], Config(blocks, 4, 1))
    assert isinstance(call.func, ast.Subscript)

    class Triton:
        @staticmethod
        def cdiv(a: int, b: int) -> int:
            return -(-a // b)

    grid = eval(ast.unparse(call.func.slice), {"triton": Triton})
    assert isinstance(grid, tuple)
    return grid


BLOCKS = st.sampled_from([1, 2, 16, 128, 1024])
SIZES = st.integers(1, 10**7)


@given(x=SIZES, y=SIZES, x_block=BLOCKS, y_block=BLOCKS)
def test_a_grid_covers_everything_once(x: int, y: int, x_block: int, y_block: int) -> None:
    sizes, blocks = {"ynumel": y, "xnumel": x}, {"YBLOCK": y_block, "XBLOCK": x_block}
    assert launched("Grid2D", sizes, blocks) == (-(-x // x_block), -(-y // y_block))
    assert launched("Grid1D", sizes, blocks) == (-(-x // x_block),)


@given(y=st.integers(1, 10**10), block=BLOCKS)
def test_rows_beyond_the_second_axis_go_to_the_third(y: int, block: int) -> None:
    sizes, blocks = {"ynumel": y, "xnumel": 1}, {"YBLOCK": block, "XBLOCK": 1}
    _, rows, layers = launched("Grid2DWithYZOverflow", sizes, blocks)
    assert rows <= 65535
    assert rows * layers >= -(-y // block) > rows * (layers - 1)


def test_a_split_scan_has_one_row_of_blocks_per_row() -> None:
    sizes = {"xnumel": 3, "r0_numel": 1000}
    assert launched("SplitScanGrid", sizes, {"R0_BLOCK": 256}) == (4, 3)


def test_an_unknown_grid_is_refused() -> None:
    with pytest.raises(BadInput, match="CooperativeReductionGrid"):
        launched("CooperativeReductionGrid", {"xnumel": 3}, {"XBLOCK": 1})


def test_a_wrapper_becomes_plain_torch() -> None:
    body = rewritten(CALL.split("args.clear()")[1], {"triton_poi_0"})
    assert body.library_calls == ["mm"]
    assert body.text.splitlines() == [
        "buf0 = torch.empty(40, 100, dtype=torch.float32, device=x.device)",
        "torch.mm(x, torch.as_strided(weight, (100, 100), (1, 100), weight.storage_offset() + 7), "
        "out=buf0)",
        "assert buf0.stride(0) == 100 and buf0.stride(2) == 1",
        "buf1 = torch.empty_strided((40, 100), (1, 40), dtype=torch.float32, device=x.device)",
        "triton_poi_0[triton.cdiv(4000, 256),](buf0, buf1, 4000, XBLOCK=256, num_warps=4, "
        "num_stages=1)",
        "del buf0",
        "return (torch.as_strided(buf1, (4000,), (1,), 5),)",
    ]


def test_operators_are_spelled_out_and_listed() -> None:
    body = rewritten("buf0 = aten.sort.stable(arg0_1, stable=True)\nbuf1 = buf0[0]")
    assert body.text.startswith("buf0 = torch.ops.aten.sort.stable(x, stable=True)")
    assert body.library_calls == ["aten.sort.stable"]


@pytest.mark.parametrize(
    ("statement", "word"),
    [
        ("extern_kernels.magic(arg0_1)", "extern_kernels.magic"),
        ("buf0 = torch.ops.inductor.seeds.default(2)", "torch.ops.inductor"),
        ("buf0 = alloc_from_pool(arg0_1, 0)", "alloc_from_pool"),
        ("buf0 = arg0_1 + _tensor_constant0", "_tensor_constant0"),
    ],
)
def test_what_a_seed_cannot_do_is_refused_by_name(statement: str, word: str) -> None:
    with pytest.raises(BadInput, match=word):
        rewritten(statement)


@given(st.lists(st.integers(1, 9), max_size=5).map(tuple))
def test_contiguous_strides_count_the_elements_behind(size: tuple[int, ...]) -> None:
    strides = contiguous_strides(size)
    assert all(stride == math.prod(size[axis + 1 :]) for axis, stride in enumerate(strides))
