"""Refuses models whose shapes or branches depend on values: no one graph computes them."""

from __future__ import annotations

import re
import traceback
from pathlib import Path

import torch
from torch._subclasses.fake_tensor import DataDependentOutputException
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from kernel_smith.errors import BadInput
from kernel_smith.proposers.seed.refusal import refused

_REMEDY = (
    "write `forward` so that neither a shape nor a branch depends on values: torch.where(c, a, b) "
    "in place of `if`, x * mask in place of x[mask], a number of get_inputs or get_init_inputs in "
    "place of .item(); or start from a kernel of your own, see docs/candidate-format.md"
)
_LINE = re.compile(r'File "(.*)", line (\d+)')
_NOT_THE_USERS = (str(Path(torch.__file__).parent), str(Path(__file__).parents[3]), "<")


def of_unknown_shape(node: torch.fx.Node) -> BadInput:
    """Refuse a graph with an operation whose result has another shape for other values."""
    found = _LINE.findall(node.meta.get("stack_trace") or "")
    where = " in {}:{}".format(*found[-1]) if found else ""
    return refused(
        f"the shape of `{node.target}`'s result{where} depends on the data", hint=_REMEDY
    )


def decides_by_values(error: Exception) -> BadInput | None:
    """Refuse a model that a tracer gave up since Python asked for a value; None if that is not why
    it did."""
    if not isinstance(error, GuardOnDataDependentSymNode | DataDependentOutputException):
        return None
    frames = traceback.extract_tb(error.__traceback__)
    theirs = [frame for frame in frames if not frame.filename.startswith(_NOT_THE_USERS)]
    where = ""
    if theirs:
        last = theirs[-1]
        where = f" in {last.filename}:{last.lineno}" + (f", `{last.line}`" if last.line else "")
    return refused(
        f"the model looks at the values of a tensor{where}: what it computes then depends on them, "
        "and a seed computes the same for all",
        hint=_REMEDY,
    )
