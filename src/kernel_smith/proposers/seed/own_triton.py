"""Triton kernels of our own: one for all calls of a kind; a launch says sizes and blocks."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace

from kernel_smith.proposers.seed.attention_triton import write_attention
from kernel_smith.proposers.seed.library_calls import Attention, Convolution, Operand, Product
from kernel_smith.proposers.seed.own_kernels import OwnKernels, Visit
from kernel_smith.proposers.seed.product_tiles import choose_splits, choose_tile
from kernel_smith.proposers.seed.templates import template
from kernel_smith.proposers.seed.triton_launch import block_of, launch
from kernel_smith.records import Precision

_TYPES = ("torch.float32", "torch.float16", "torch.bfloat16")
_WARPS, _STAGES, _GROUP = 8, 3, 8
_FEW_CHANNELS = 16
_LARGE, _TURNED = 128, 64  # extents of a product that is worth turning, of a block that is turned
_ELEMENTS = 256  # of a program that multiplies no matrices


class TritonKernels(OwnKernels):
    """Launches of `multiply`, `turn`, `convolve`, `convolve_apart` and `attend`, and of what joins
    parts of them."""

    device = "cuda"

    def __init__(
        self, body: Sequence[ast.stmt], types: Mapping[str, str], precision: Precision
    ) -> None:
        super().__init__(body, types)
        self._precision = "ieee" if precision is Precision.STRICT else "tf32"
        self._turns = 0

    def _multiply(self, product: Product, visit: Visit) -> list[str]:
        if product.dtype not in _TYPES:
            return []
        self.texts["multiply"] = template("product_triton.txt").strip()
        rows, inner, columns = product.sizes
        turns: list[str] = []
        if product.dtype == "torch.float32" and self._precision == "tf32" and _is_large(product):
            product, turns = self._turned(product, visit)
        tile = choose_tile(rows, inner, columns, product.batch, _width(product.dtype))
        names = [f"{m}_{way}" for m in ("A", "B", "C", "BIAS") for way in ("DOWN", "RIGHT")]
        distances = [distance for layout in product.layouts for distance in layout]
        numbers: dict[str, object] = {
            **dict(zip(("ROWS", "INNER", "COLUMNS"), product.sizes, strict=True)),
            **dict(zip(names, distances, strict=True)),
            **dict(zip(("A_STEP", "B_STEP", "C_STEP"), product.steps, strict=True)),
            "PRECISION": self._precision,
            "BLOCK_ROWS": tile.rows,
            "BLOCK_COLUMNS": tile.columns,
            "BLOCK_INNER": tile.inner,
            "GROUP": _GROUP,
            "num_warps": tile.warps,
            "num_stages": tile.stages,
        }
        count = f"triton.cdiv({rows}, {tile.rows}) * triton.cdiv({columns}, {tile.columns})"
        splits = choose_splits(tile, rows, inner, columns, product.batch)
        grid = [count, str(product.batch), str(splits)]
        operands = [product.a, product.b, product.c, product.bias]
        if splits == 1:
            whole = numbers | {"SPLITS": 1, "C_SPLIT": 0}
            return [*turns, _launch("multiply", grid, operands, whole, visit)]
        given = _given(operands, visit)
        return [*turns, *self._multiply_apart(product, grid, given, numbers)]

    def _multiply_apart(
        self, product: Product, grid: list[str], given: list[str], numbers: dict[str, object]
    ) -> list[str]:
        """Statements that multiply in parts of what is summed, and add these up."""
        self.texts["multiply_join"] = template("product_join_triton.txt").strip()
        a, b, c, bias = given
        rows, _, columns = product.sizes
        elements, parts = rows * columns * product.batch, f"{c}_parts"
        size = (int(grid[2]), product.batch, rows, columns)
        lies = {"C_DOWN": columns, "C_RIGHT": 1, "C_STEP": rows * columns}
        split = {"SPLITS": size[0], "C_SPLIT": elements}
        kept = ("ROWS", "COLUMNS", "C_DOWN", "C_RIGHT", "C_STEP", "BIAS_DOWN", "BIAS_RIGHT")
        joined = {
            "ELEMENTS": elements,
            **{name: numbers[name] for name in kept},
            "SPLITS": size[0],
            "BLOCK": _ELEMENTS,
            "num_warps": 4,
        }
        return [
            f"{parts} = torch.empty({size}, dtype=torch.float32, device={a}.device)",
            launch("multiply", grid, [a, b, parts, "None"], numbers | lies | split),
            launch(
                "multiply_join", [f"triton.cdiv({elements}, {_ELEMENTS})"], [parts, c, bias], joined
            ),
        ]

    def _turned(self, product: Product, visit: Visit) -> tuple[Product, list[str]]:
        """Return a product whose matrices lie so that what is summed lies side by side, and what
        turns them: else tensor cores get such numbers one by one, which takes longer than this."""
        rows, inner, columns = product.sizes
        statements: list[str] = []
        b = product.b.transposed()
        if _is_turned(product.a):
            a = self._turn(product.a.transposed(), inner, rows, visit, statements)
            product = replace(product, a=a)
        if _is_turned(b):
            b = self._turn(product.b, inner, columns, visit, statements)
            product = replace(product, b=b.transposed())
        return product, statements

    def _turn(
        self, x: Operand, rows: int, columns: int, visit: Visit, statements: list[str]
    ) -> Operand:
        self.texts["turn"] = template("turn_triton.txt").strip()
        self._turns += 1
        name, given = f"turned_{self._turns}", ast.unparse(visit(x.passed))
        step = x.stride[0] if len(x.size) == 3 else 0
        batch = x.size[0] if step else 1
        numbers = {"ROWS": rows, "COLUMNS": columns, "DOWN": x.stride[-2], "STEP": step}
        grid = [f"triton.cdiv({rows}, {_TURNED}) * triton.cdiv({columns}, {_TURNED})", str(batch)]
        size = (batch, columns, rows)
        statements += [
            f"{name} = torch.empty({size}, dtype=torch.float32, device={given}.device)",
            launch("turn", grid, [given, name], numbers | {"BLOCK": _TURNED, "num_warps": 4}),
        ]
        outer = (rows * columns if step else 0,) if len(x.size) == 3 else ()
        passed = ast.parse(name, mode="eval").body
        return Operand(passed, (*x.size[:-2], columns, rows), (*outer, rows, 1))

    def _convolve(self, found: Convolution, visit: Visit) -> str | None:
        if found.dtype not in _TYPES:
            return None
        inside, outside = found.channels
        if found.groups > 1 and inside < _FEW_CHANNELS and outside < _FEW_CHANNELS:
            return self._convolve_apart(found, visit)
        self.texts["convolve"] = template("convolution_triton.txt").strip()
        apart = found.step if found.transposed else (1, 1, 1)
        extents = zip(found.y.size[2:], apart, strict=True)
        pixels = found.y.size[0] * math.prod(-(-extent // step) for extent, step in extents)
        depth = _depth(found.dtype)
        blocks = {
            "BLOCK_PIXELS": block_of(pixels, 128),
            "BLOCK_OUT": block_of(outside, 128),
            # Where a tap has few channels, a block holds several taps.
            "BLOCK_IN": depth if inside < _FEW_CHANNELS else block_of(inside, depth),
        }
        numbers = {
            "IMAGES": found.x.size[0],
            **_shape(found),
            **_met_taps(found),
            "PRECISION": self._precision,
            **blocks,
            **_effort(blocks["BLOCK_PIXELS"] * blocks["BLOCK_OUT"]),
        }
        count = f"triton.cdiv({pixels}, {blocks['BLOCK_PIXELS']}) * "
        count += f"triton.cdiv({outside}, {blocks['BLOCK_OUT']})"
        grid = [count, str(found.groups), str(math.prod(apart))]
        operands = (found.x, found.weight, found.y, found.bias)
        return _launch("convolve", grid, operands, numbers, visit)

    def _convolve_apart(self, found: Convolution, visit: Visit) -> str:
        self.texts["convolve_apart"] = template("grouped_triton.txt").strip()
        images, channels, *extents = found.y.size
        numbers = {**_shape(found), "BLOCK": _ELEMENTS, "num_warps": 4}
        grid = [f"triton.cdiv({math.prod(extents)}, {_ELEMENTS})", str(channels), str(images)]
        operands = (found.x, found.weight, found.y, found.bias)
        return _launch("convolve_apart", grid, operands, numbers, visit)

    def _attend(self, found: Attention, visit: Visit) -> list[str]:
        if found.dtype not in _TYPES:
            return []
        self.texts["attend"] = template("attention_triton.txt").strip()
        self.texts["attend_join"] = template("attention_join_triton.txt").strip()
        return write_attention(found, self._precision, visit)


def _is_large(product: Product) -> bool:
    return min(product.sizes) >= _LARGE


def _is_turned(x: Operand) -> bool:
    """Tell whether the elements of a column lie side by side, and those of a row do not."""
    return x.stride[-2] == 1 and x.stride[-1] != 1


def _launch(
    name: str,
    grid: Sequence[str],
    operands: Sequence[Operand | None],
    numbers: Mapping[str, object],
    visit: Visit,
) -> str:
    return launch(name, grid, _given(operands, visit), numbers)


def _given(operands: Sequence[Operand | None], visit: Visit) -> list[str]:
    return ["None" if one is None else ast.unparse(visit(one.passed)) for one in operands]


def _shape(found: Convolution) -> dict[str, object]:
    inside, outside = found.channels
    return {
        "IN": inside,
        "OUT": outside,
        **found.boxes,
        "TRANSPOSED": found.transposed,
        "X": found.x.stride,
        "WEIGHT": found.weight.stride,
        "Y": found.y.stride,
    }


def _met_taps(found: Convolution) -> dict[str, tuple[int, ...]]:
    """Tell how far taps lie apart that one pixel of a transposed convolution meets, and the inverse
    of the dilation, by which the first of them is found."""
    if not found.transposed:
        return {"LEAP": (1, 1, 1), "INVERSE": (0, 0, 0)}
    common = list(map(math.gcd, found.step, found.dilation))
    leaps = [step // by for step, by in zip(found.step, common, strict=True)]
    gaps = [gap // by for gap, by in zip(found.dilation, common, strict=True)]
    return {"LEAP": tuple(leaps), "INVERSE": tuple(map(_inverse, gaps, leaps))}


def _inverse(number: int, modulus: int) -> int:
    return pow(number, -1, modulus)


def _depth(dtype: str) -> int:
    """Tell how much is summed at once: a fixed number of bytes."""
    return 128 // _width(dtype)


def _width(dtype: str) -> int:
    """Bytes of an element."""
    return 4 if dtype == "torch.float32" else 2


def _effort(elements: int) -> dict[str, int]:
    """For a program with so many sums."""
    return {"num_warps": _WARPS if elements >= 8192 else 4, "num_stages": _STAGES}
