"""Inductor's Triton kernels as plain `@triton.jit` functions, and how each one is launched."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

from kernel_smith.proposers.seed.refusal import refused
from kernel_smith.proposers.seed.triton_clean import clean

# What the language has itself. `sqrt` rounds correctly in libdevice, so it must here.
_PLAIN = {
    **{name: name for name in ("abs", "ceil", "cos", "erf", "exp", "exp2", "floor", "fma")},
    **{name: name for name in ("log", "log2", "rsqrt", "sin")},
    "sqrt": "sqrt_rn",
}
_MATH = re.compile(r"\b(?:libdevice|tl_math)\.(\w+)\(")


@dataclass(frozen=True)
class Config:
    """The block sizes and the resources that the compiler chose for a kernel."""

    blocks: dict[str, int]
    num_warps: int
    num_stages: int


@dataclass(frozen=True)
class TritonKernel:
    """`parameters` are those of a launch in order; `blocks` are the `constexpr` ones."""

    name: str
    text: str
    parameters: tuple[str, ...]
    blocks: tuple[str, ...]
    grid_type: str

    def launch(self, arguments: list[ast.expr], config: Config) -> ast.Call:
        """`kernel[grid](arguments, XBLOCK=..., num_warps=..., num_stages=...)`."""
        if len(arguments) != len(self.parameters) or not set(self.blocks) <= set(config.blocks):
            raise refused(f"the compiler launches {self.name} in a way that seeds do not know")
        given = dict(zip(self.parameters, arguments, strict=True))
        keywords: dict[str, int] = {name: config.blocks[name] for name in self.blocks}
        keywords |= {"num_warps": config.num_warps, "num_stages": config.num_stages}
        grid = ", ".join(self._grid(given, config.blocks))
        function = ast.parse(f"{self.name}[({grid},)]", mode="eval").body
        return ast.Call(
            func=function,
            args=arguments,
            keywords=[ast.keyword(key, ast.Constant(value)) for key, value in keywords.items()],
        )

    def _grid(self, given: dict[str, ast.expr], blocks: dict[str, int]) -> list[str]:
        """Return the number of programs along each axis, as Inductor's launchers compute it."""

        def programs(size: str, block: str) -> str:
            count = ast.unparse(given[size])
            chosen = blocks.get(block, 1)
            return count if chosen == 1 else f"triton.cdiv({count}, {chosen})"

        match self.grid_type:
            case "Grid1D":
                return [programs("xnumel", "XBLOCK")]
            case "Grid2D":
                return [programs("xnumel", "XBLOCK"), programs("ynumel", "YBLOCK")]
            case "Grid3D":
                axes = (("xnumel", "XBLOCK"), ("ynumel", "YBLOCK"), ("znumel", "ZBLOCK"))
                return [programs(size, block) for size, block in axes]
            case "BatchMatmulGrid3D":
                axes = (("znumel", "ZBLOCK"), ("ynumel", "YBLOCK"), ("xnumel", "XBLOCK"))
                return [programs(size, block) for size, block in axes]
            case "Grid2DWithYZOverflow":
                return [programs("xnumel", "XBLOCK"), *_spread(programs("ynumel", "YBLOCK"))]
            case "SplitScanGrid":
                return [programs("r0_numel", "R0_BLOCK"), ast.unparse(given["xnumel"])]
        raise refused(f"the compiler launches {self.name} on a `{self.grid_type}`")


_LARGEST_Y_GRID = 65535


def _spread(rows: str) -> list[str]:
    """Rows that exceed the second axis of a grid go on along the third."""
    layers = f"triton.cdiv({rows}, {_LARGEST_Y_GRID})"
    return [f"triton.cdiv({rows}, {layers})", layers]


def read_triton_kernel(name: str, text: str) -> TritonKernel:
    """Return one kernel's module: helpers, decorators and the function itself."""
    tree = ast.parse(text)
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    kernel = functions[-1]
    heuristics, meta = _decorator(kernel)
    if heuristics in ("template", "foreach", "user_autotune", "cooperative_reduction"):
        raise refused(f"the compiler makes {name} from `{heuristics}`, which seeds do not know")
    lines = text.splitlines()
    parts = [clean(_source(lines, function)) for function in functions]
    readable = "\n\n\n".join(f"@triton.jit\n{part}" for part in parts)
    helpers = {f.name: f"{name}{f.name.removeprefix('_triton_helper_fn')}" for f in functions[:-1]}
    for old, new in helpers.items():
        readable = re.sub(rf"\b{old}\b", new, readable)
    blocks = tuple(arg.arg for arg in kernel.args.args if _is_constexpr(arg))
    parameters = tuple(arg.arg for arg in kernel.args.args if not _is_constexpr(arg))
    grid_type = str(meta.get("grid_type", "Grid1D"))
    return TritonKernel(name, _plain_math(readable), parameters, blocks, grid_type)


def _source(lines: list[str], function: ast.FunctionDef) -> str:
    """Return a function's own lines, without its decorators."""
    return "\n".join(lines[function.lineno - 1 : function.end_lineno])


def _decorator(kernel: ast.FunctionDef) -> tuple[str, dict[str, Any]]:
    """Return the name of the heuristics, and the literal parts of `inductor_meta`."""
    for decorator in kernel.decorator_list:
        if isinstance(decorator, ast.Call) and isinstance(decorator.func, ast.Attribute):
            for keyword in decorator.keywords:
                if keyword.arg == "inductor_meta" and isinstance(keyword.value, ast.Dict):
                    return decorator.func.attr, _literals(keyword.value)
            return decorator.func.attr, {}
    return "", {}


def _literals(node: ast.Dict) -> dict[str, Any]:
    pairs = zip(node.keys, node.values, strict=True)
    return {
        key.value: value.value
        for key, value in pairs
        if isinstance(key, ast.Constant)
        and isinstance(key.value, str)
        and isinstance(value, ast.Constant)
    }


def _is_constexpr(argument: ast.arg) -> bool:
    return argument.annotation is not None and "constexpr" in ast.unparse(argument.annotation)


def _plain_math(text: str) -> str:
    """Functions of the language instead of libdevice's, where both have them."""

    def spelled(found: re.Match[str]) -> str:
        name = found[1]
        return f"tl.{_PLAIN[name]}(" if name in _PLAIN else f"libdevice.{name}("

    return _MATH.sub(spelled, text)
