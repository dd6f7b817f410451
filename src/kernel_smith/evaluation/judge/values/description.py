"""Checks of what a result looks like, before its values are compared."""

from __future__ import annotations

from typing import Any

from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.sandbox.arena import contiguous_stride
from kernel_smith.records import Reason


def check_description(got: Any, want: dict[str, Any]) -> None:
    """Raise `Rejected` where a result differs in nesting, type, shape, dtype or memory."""
    try:
        _check(got, want)
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise Rejected(
            Reason.PROTOCOL_VIOLATION, f"malformed description of a result: {error!r}"
        ) from None


def _check(got: dict[str, Any], want: dict[str, Any]) -> None:
    if got["tree"] != want["tree"]:
        shown = f"got {_show(got['tree'])}, expected {_show(want['tree'])}"
        foreign = "?" in str(got["tree"])
        raise Rejected(Reason.OUTPUT_TYPE if foreign else Reason.OUTPUT_STRUCTURE, shown)
    for index, (mine, theirs) in enumerate(zip(got["tensors"], want["tensors"], strict=True)):
        _check_tensor(f"output {index}", mine, theirs)


def _check_tensor(name: str, got: dict[str, Any], want: dict[str, Any]) -> None:
    if not got["dense"]:
        raise Rejected(Reason.OUTPUT_TYPE, f"{name} is not a dense tensor on the task's device")
    for field, reason in (("shape", Reason.OUTPUT_SHAPE), ("dtype", Reason.OUTPUT_DTYPE)):
        if got[field] != want[field]:
            raise Rejected(reason, f"{name}: got {got[field]}, expected {want[field]}")
    contiguous = list(contiguous_stride(want["shape"]))
    if not _equivalent_strides(got, want["stride"]) and not _equivalent_strides(got, contiguous):
        expected = f"{contiguous} (contiguous)"
        if not _equivalent_strides(want, contiguous):
            expected = f"{want['stride']} (the reference's) or {expected}"
        raise Rejected(
            Reason.OUTPUT_STRIDES, f"{name}: got strides {got['stride']}, expected {expected}"
        )
    if got["aliases"] and not want["aliases"]:
        raise Rejected(Reason.OUTPUT_ALIASES_INPUT, f"{name} lies in an input's memory")
    if got["reused"] and not want["reused"]:
        raise Rejected(Reason.OUTPUT_REUSED, f"{name} has the address of an earlier call's output")


def _equivalent_strides(got: dict[str, Any], stride: list[int]) -> bool:
    """Strides of dimensions with one element, and of empty tensors, mean nothing."""
    if 0 in got["shape"]:
        return True
    triples = zip(got["shape"], got["stride"], stride, strict=True)
    return all(mine == theirs for size, mine, theirs in triples if size != 1)


def _show(tree: Any) -> str:
    if isinstance(tree, str):
        return tree.removeprefix("?")
    if not tree:
        return "nothing"
    return f"{tree[0]}({', '.join(_show(item) for item in tree[1:])})"
