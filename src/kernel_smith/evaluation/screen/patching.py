"""Changing imported modules, or switches of the whole process, instead of computing."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from kernel_smith.evaluation.screen.code import Code, is_under
from kernel_smith.records import Finding, Reason

_SWITCHES = (
    "torch.set_num_threads",
    "torch.set_num_interop_threads",
    "torch.set_default_dtype",
    "torch.set_default_device",
    "torch.set_default_tensor_type",
    "torch.set_float32_matmul_precision",
    "torch.set_flush_denormal",
    "torch.set_deterministic_debug_mode",
    "torch.use_deterministic_algorithms",
    "torch.backends.cuda.enable_flash_sdp",
    "torch.backends.cuda.enable_math_sdp",
    "torch.backends.cuda.enable_mem_efficient_sdp",
    "torch.backends.cuda.enable_cudnn_sdp",
)

_SETTINGS = ("torch.backends", "torch._dynamo.config", "torch._inductor.config")

# Thread counts are the judge's to set, and these change what gets loaded. Others, such as
# TORCH_CUDA_ARCH_LIST, only steer the candidate's own build.
_ENVIRONMENT = ("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "LD_", "PYTHON", "KERNEL_SMITH")

_SETTERS = (
    "builtins.setattr",
    "builtins.delattr",
    "builtins.object.__setattr__",
    "builtins.object.__delattr__",
    "builtins.type.__setattr__",
    "builtins.type.__delattr__",
)


def patched_modules(code: Code) -> Iterator[Finding]:
    for node in code.nodes:
        if isinstance(node, (ast.Attribute, ast.Subscript)):
            if isinstance(node.ctx, (ast.Store, ast.Del)):
                yield from _assignment(code, node)
        elif isinstance(node, ast.Call):
            yield from _setter_call(code, node)


def switches(code: Code) -> Iterator[Finding]:
    for reference in code.references:
        if reference.origin in _SWITCHES and not reference.is_import:
            yield _switch(code, reference.node, f"`{reference.origin}`")
    for origin, call in code.calls():
        if is_under(origin, "os.environ"):
            for key in _environment_keys(origin, call):
                if key.startswith(_ENVIRONMENT):
                    yield _switch(code, call, f"the environment variable `{key}`")
        elif origin == "torch.library.Library" and _namespace(call) in ("aten", "prim", "prims"):
            yield _patch(code, call, f"the operators of `{_namespace(call)}`")


def _assignment(code: Code, target: ast.Attribute | ast.Subscript) -> Iterator[Finding]:
    owner = code.names.origin(target.value)
    if owner is None:
        return
    if isinstance(target, ast.Attribute):
        yield from _changed(code, target, f"{owner}.{target.attr}")
    elif owner == "os.environ":
        match target.slice:
            case ast.Constant(value=str(key)) if key.startswith(_ENVIRONMENT):
                yield _switch(code, target, f"the environment variable `{key}`")
    else:
        yield from _changed(code, target, code.names.origin(target) or f"{owner}[...]")


def _setter_call(code: Code, call: ast.Call) -> Iterator[Finding]:
    function = code.names.origin(call.func)
    if function is None:
        return
    owner, _, method = function.rpartition(".")
    changed: str | None = None
    match call.args:
        case [target, *_] if function in _SETTERS:
            changed = code.names.origin(target)
        # Two arguments: the method of `owner` itself. `nn.Module.__setattr__(self, name, value)`,
        # with three, is about another object.
        case [_, _] if method == "__setattr__":
            changed = owner
        case [_] if method == "__delattr__":
            changed = owner
        case _ if owner.endswith(".__dict__") and method in ("update", "setdefault", "pop"):
            changed = owner.removesuffix(".__dict__")
    if changed is not None:
        yield from _changed(code, call, f"{changed}.{_attribute_name(call, function)}")


def _attribute_name(call: ast.Call, function: str) -> str:
    position = 1 if function in _SETTERS else 0
    match call.args[position : position + 1]:
        case [ast.Constant(value=str(name))]:
            return name
    return "..."


def _changed(code: Code, node: ast.expr, what: str) -> Iterator[Finding]:
    if any(is_under(what, setting) for setting in _SETTINGS):
        yield _switch(code, node, f"`{what}`")
    else:
        yield _patch(code, node, f"`{what}`")


def _patch(code: Code, node: ast.stmt | ast.expr, what: str) -> Finding:
    return code.finding(
        Reason.MONKEYPATCH, node, f"changes {what}, which belongs to an imported module"
    )


def _switch(code: Code, node: ast.stmt | ast.expr, what: str) -> Finding:
    return code.finding(
        Reason.MONKEYPATCH, node, f"sets {what}, a switch of the whole process that the judge owns"
    )


def _environment_keys(origin: str, call: ast.Call) -> Iterator[str]:
    """The literal names that a method of `os.environ` sets or removes."""
    method = origin.removeprefix("os.environ.")
    if method in ("setdefault", "pop", "__setitem__", "__delitem__"):
        candidates: list[ast.expr | None] = list(call.args[:1])
    elif method == "update":
        yield from (keyword.arg for keyword in call.keywords if keyword.arg is not None)
        candidates = [
            key for argument in call.args if isinstance(argument, ast.Dict) for key in argument.keys
        ]
    else:
        return
    for key in candidates:
        if isinstance(key, ast.Constant) and isinstance(key.value, str):
            yield key.value


def _namespace(call: ast.Call) -> object:
    first = call.args[0] if call.args else None
    return first.value if isinstance(first, ast.Constant) else None
