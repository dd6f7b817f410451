"""Functions that a kernel has no use for: dynamic code, files, loading other libraries."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernel_smith.evaluation.screen.code import Code, is_under
from kernel_smith.evaluation.screen.imports import MODULES
from kernel_smith.records import Finding, Reason

_BUILTINS = {
    "exec": "runs text as code",
    "eval": "runs text as code",
    "compile": "turns text into code",
    "__import__": "imports by name",
    "open": "works on files",
    "input": "waits for a person",
    "breakpoint": "waits for a person",
}

_LOADS = "loads or stores files"
_LIBRARY = "loads a library that the candidate did not author"

# Refused with everything inside them.
_FUNCTIONS = {
    "torch.load": _LOADS,
    "torch.save": _LOADS,
    "torch.from_file": _LOADS,
    "torch.jit.load": _LOADS,
    "torch.jit.save": _LOADS,
    "torch.package": _LOADS,
    "torch.hub": "fetches code",
    "torch.utils.model_zoo": "fetches files",
    "torch.ops.load_library": _LIBRARY,
    "torch.classes": _LIBRARY,
    "kernel_smith.inline.set_provider": "decides who compiles, which is the judge's to decide",
    "torch.Tensor._make_subclass": "makes a tensor that is not a plain one",
    "torch.Tensor._make_wrapper_subclass": "makes a tensor that is not a plain one",
    "numpy.load": _LOADS,
    "numpy.save": _LOADS,
    "numpy.savez": _LOADS,
    "numpy.savez_compressed": _LOADS,
    "numpy.loadtxt": _LOADS,
    "numpy.savetxt": _LOADS,
    "numpy.genfromtxt": _LOADS,
    "numpy.fromfile": _LOADS,
    "numpy.memmap": _LOADS,
    "io.open": _LOADS,
    "io.FileIO": _LOADS,
    "codecs.open": _LOADS,
}

_TENSOR_CLASSES = (
    "torch.Tensor",
    "torch._tensor.Tensor",
    "torch._C.TensorBase",
    "torch._C._TensorBase",
    "torch.nn.Parameter",
    "torch.nn.parameter.Parameter",
    "torch.nn.Buffer",
    "torch.nn.parameter.Buffer",
)


def forbidden_calls(code: Code) -> Iterator[Finding]:
    for origin, call in code.calls():
        name = origin.removeprefix("builtins.")
        if origin.startswith("builtins.") and name in _BUILTINS:
            yield _refused(code, call, f"calls `{name}`, which {_BUILTINS[name]}")
        elif origin == "builtins.getattr":
            yield from _hidden_attribute(code, call)
    for reference in code.references:
        for function, use in _FUNCTIONS.items():
            if is_under(reference.origin, function):
                yield _refused(code, reference.node, f"uses `{function}`, which {use}")
    for node in code.nodes:
        if isinstance(node, ast.Name) and node.id == "__builtins__":
            yield _refused(code, node, "uses `__builtins__`, which hides what is called")


def tensor_subclasses(code: Code) -> Iterator[Finding]:
    """Outputs must be plain tensors; a subclass could compute when it is read."""
    for node in code.nodes:
        match node:
            case ast.ClassDef():
                bases = node.bases
            case ast.Call(func=function, args=[_, ast.Tuple(elts=bases), _]):
                if code.names.origin(function) != "builtins.type":
                    continue
            case _:
                continue
        for base in bases:
            origin = code.names.origin(base)
            if origin in _TENSOR_CLASSES:
                yield _refused(
                    code, node, f"derives a class from `{origin}`, but outputs are plain tensors"
                )


def _hidden_attribute(code: Code, call: ast.Call) -> Iterator[Finding]:
    """`getattr(os, name)`; on torch a computed name is fine, as in `getattr(torch, dtype)`."""
    match call.args:
        case [owner, name, *_] if not isinstance(name, ast.Constant):
            origin = code.names.origin(owner)
            if origin in MODULES or origin == "sys":
                yield _refused(code, call, f"takes an attribute of `{origin}` by a computed name")


def _refused(code: Code, node: ast.stmt | ast.expr, what: str) -> Finding:
    return code.finding(Reason.FORBIDDEN_CALL, node, what)
