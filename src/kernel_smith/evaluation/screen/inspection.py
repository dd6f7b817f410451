"""Looking at the caller or the interpreter instead of at the arguments."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernel_smith.evaluation.screen.code import Code, is_under
from kernel_smith.records import Finding, Reason

_FUNCTIONS = (
    "sys._getframe",
    "sys._getframemodulename",
    "sys._current_frames",
    "sys._current_exceptions",
    "sys.settrace",
    "sys.setprofile",
    "sys.gettrace",
    "sys.getprofile",
    "sys.monitoring",
    "sys.addaudithook",
    "sys.*",
    "traceback.extract_stack",
    "traceback.format_stack",
    "traceback.print_stack",
    "traceback.walk_stack",
    "traceback.StackSummary",
)

_ATTRIBUTES = {
    *("f_back", "f_globals", "f_locals", "f_builtins", "tb_frame", "gi_frame", "cr_frame"),
    *("__globals__", "__closure__", "__subclasses__", "__builtins__"),
}


def stack_inspection(code: Code) -> Iterator[Finding]:
    for reference in code.references:
        if any(is_under(reference.origin, function) for function in _FUNCTIONS):
            yield code.finding(
                Reason.STACK_INSPECTION,
                reference.node,
                f"uses `{reference.origin}`, which shows the caller or the interpreter",
            )
    for node in code.nodes:
        attribute = _attribute(code, node)
        if attribute in _ATTRIBUTES:
            assert isinstance(node, ast.expr)
            yield code.finding(
                Reason.STACK_INSPECTION,
                node,
                f"reads `{attribute}`, which shows the caller or the interpreter",
            )


def _attribute(code: Code, node: ast.AST) -> str | None:
    match node:
        case ast.Attribute():
            return node.attr
        case ast.Call(func=function, args=[_, ast.Constant(value=str(name)), *_]):
            return name if code.names.origin(function) == "builtins.getattr" else None
    return None
