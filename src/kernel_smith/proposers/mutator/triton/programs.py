"""Edits of loops in a kernel, and of what each program of the grid works on."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernel_smith.proposers.mutator.edit import Site, Splice
from kernel_smith.proposers.mutator.triton.text import (
    TritonText,
    calls,
    grid,
    program_ids,
    triton_edit,
)

_USUAL_MULTIPROCESSORS = 132  # of an H100 or H200, where nobody knows better


def _ranges(text: TritonText) -> Iterator[tuple[str, ast.Call]]:
    """Yield the loops over a plain `range` in kernels."""
    for kernel in text.kernels:
        number = 0
        for node in ast.walk(kernel):
            if not (isinstance(node, ast.For) and isinstance(node.iter, ast.Call)):
                continue
            called = node.iter.func
            if isinstance(called, ast.Name) and called.id == "range" and node.iter.args:
                number += 1
                yield f"loop no. {number} of {kernel.name} over {text.of(node.target)}", node.iter


@triton_edit("pipeline-loop", "Load for later iterations of a loop while an earlier one computes.")
def pipeline(text: TritonText) -> Iterator[Site]:
    for place, call in _ranges(text):
        for stages in (2, 3, 4):
            changes = (
                text.replaced(call.func, "tl.range"),
                text.keyword(call, f"num_stages={stages}"),
            )
            yield Site(place, changes, f"{stages} stages")


@triton_edit("unroll-kernel-loop", "Unroll a loop of a kernel.")
def unroll(text: TritonText) -> Iterator[Site]:
    for place, call in _ranges(text):
        for factor in (2, 4):
            added = text.keyword(call, f"loop_unroll_factor={factor}")
            yield Site(place, (text.replaced(call.func, "tl.range"), added), f"by {factor}")


@triton_edit(
    "group-programs",
    "Let programs that run at the same time work on neighbouring tiles, which share data in cache.",
)
def group_programs(text: TritonText) -> Iterator[Site]:
    for kernel in text.kernels:
        axes = program_ids(kernel)
        if axes is None or not {0, 1} <= set(axes) or calls(kernel, "swizzle2d"):
            continue
        for size in (4, 8):
            line = (
                "grouped_0, grouped_1 = tl.swizzle2d(tl.program_id(0), tl.program_id(1), "
                f"tl.num_programs(0), tl.num_programs(1), {size})\n"
            )
            at = text.line_start(kernel.body[0].lineno)
            changes = [Splice(at, at, " " * kernel.body[0].col_offset + line)]
            for axis in (0, 1):
                changes += [text.replaced(call, f"grouped_{axis}") for call in axes[axis]]
            yield Site(kernel.name, tuple(changes), f"groups of {size}")


@triton_edit("swap-grid-axes", "Let the programs of the other axis run side by side.")
def swap_grid_axes(text: TritonText) -> Iterator[Site]:
    for kernel in text.kernels:
        axes = program_ids(kernel)
        launches = text.launches(kernel.name)
        if axes is None or set(axes) != {0, 1} or launches is None or calls(kernel, "num_programs"):
            continue
        grids = [grid(launch) for launch in launches]
        if any(sizes is None or len(sizes) != 2 for sizes in grids):
            continue
        changes = [
            text.replaced(call, f"tl.program_id({1 - axis})")
            for axis in (0, 1)
            for call in axes[axis]
        ]
        for sizes in grids:
            assert sizes is not None
            first, second = text.of(sizes[0]), text.of(sizes[1])
            changes += [text.replaced(sizes[0], second), text.replaced(sizes[1], first)]
        yield Site(kernel.name, tuple(changes))


@triton_edit(
    "persistent-programs",
    "Launch as many programs as the GPU runs at once, and let each take one piece after the other.",
)
def persistent(text: TritonText) -> Iterator[Site]:
    multiprocessors = text.machine.multiprocessors or _USUAL_MULTIPROCESSORS
    for each in (2, 8):
        programs = each * multiprocessors
        count = "tl.cdiv(all_programs - tl.program_id(0), tl.num_programs(0))"
        program = "tl.program_id(0) + step * tl.num_programs(0)"
        size = f"min({{0}}, {programs})"
        yield from _looped(text, count, program, size, f"{programs} programs")


@triton_edit("rows-per-program", "Let each program do several neighbouring pieces of work.")
def rows_per_program(text: TritonText) -> Iterator[Site]:
    for most in (2, 4, 8):
        count = f"tl.minimum({most}, all_programs - tl.program_id(0) * {most})"
        program = f"tl.program_id(0) * {most} + step"
        yield from _looped(text, count, program, f"-(-({{0}}) // {most})", f"{most} pieces")


def _looped(text: TritonText, count: str, program: str, size: str, choice: str) -> Iterator[Site]:
    """Yield a loop around the body of kernels with a grid of one axis, and the launches to fit."""
    for kernel in text.kernels:
        launches = text.launches(kernel.name)
        if launches is None or not _can_loop(kernel):
            continue
        grids = [grid(launch) for launch in launches]
        if any(sizes is None or len(sizes) != 1 for sizes in grids):
            continue
        head = (f"for step in range(0, {count}):", f"    program = {program}")
        changes = _in_loop(text, kernel, head)
        for launch, sizes in zip(launches, grids, strict=True):
            assert sizes is not None
            whole = text.of(sizes[0])
            changes.append(text.replaced(sizes[0], size.format(whole)))
            changes.append(text.keyword(launch, f"all_programs={whole}"))
        yield Site(kernel.name, tuple(changes), choice)


def _can_loop(kernel: ast.FunctionDef) -> bool:
    """Does nothing in a kernel depend on being run once per program?"""
    axes, given = program_ids(kernel), kernel.args
    if axes is None or set(axes) != {0} or len(kernel.decorator_list) != 1:
        return False
    if given.defaults or given.vararg or given.kwarg or given.kwonlyargs or given.posonlyargs:
        return False
    added = {"all_programs", "program", "step"}
    names = {argument.arg for argument in given.args} | added
    for node in ast.walk(kernel):
        stored = isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        if stored and isinstance(node, ast.Name) and node.id in names:
            return False
        if isinstance(node, ast.Return | ast.FunctionDef) and node is not kernel:
            return False
        if isinstance(node, ast.Constant) and node.lineno != node.end_lineno:
            return False
    alone = kernel.body[0].lineno > kernel.lineno
    taken = added & {argument.arg for argument in given.args}
    return alone and not taken and not calls(kernel, "num_programs")


def _in_loop(text: TritonText, kernel: ast.FunctionDef, head: tuple[str, str]) -> list[Splice]:
    first, last = kernel.body[0], kernel.body[-1]
    indent = " " * first.col_offset
    ahead = "".join(f"{indent}{line}\n" for line in head)
    changes = []
    for line in range(first.lineno, (last.end_lineno or last.lineno) + 1):
        at = text.line_start(line)
        changes.append(Splice(at, at, (ahead if line == first.lineno else "") + "    "))
    changes += [text.replaced(call, "program") for call in calls(kernel, "program_id")]
    return [*changes, text.parameter(kernel, "all_programs")]
