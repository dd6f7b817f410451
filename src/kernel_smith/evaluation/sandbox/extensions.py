"""PyTorch's `load_inline` in a candidate's process, where nothing can be compiled.

`replace_load_inline` lets it ask for the compiled module. Where kernels are to do nothing, the
functions of a module for the CPU still run, since only they know what they return, but leave no
trace: arguments are as before, and results are zero.
"""

from __future__ import annotations

import importlib.util
import inspect
import types
from collections.abc import Callable
from importlib.machinery import ExtensionFileLoader
from typing import Any, NoReturn

import torch

from kernel_smith.inline import CompileError, Provider
from kernel_smith.inline.extension import compose
from kernel_smith.inline.extension_recipe import MODULE

_HIDDEN_BY_THE_PROCESS = "cpp-extension"  # where a GPU is launched on, launches are left out


def replace_load_inline(provider: Provider, *, disarmed: bool) -> None:
    """From now on, in this process, the provider compiles what `load_inline` is given."""
    from torch.utils import cpp_extension

    signature = inspect.signature(cpp_extension.load_inline)

    def load_inline(*arguments: Any, **named: Any) -> Any:
        made = compose(signature.bind(*arguments, **named).arguments)
        module = _imported(provider(made.dialect, made.source, made.flags))
        hidden = disarmed and made.dialect == _HIDDEN_BY_THE_PROCESS
        return _WithoutEffect(module) if hidden else module

    patched: Any = cpp_extension
    patched.load_inline = load_inline
    patched.load = _refuse_files


def _refuse_files(*arguments: Any, **named: Any) -> NoReturn:
    raise CompileError("load() reads files, and a candidate is one file: use load_inline()", "")


def _imported(path: str) -> types.ModuleType:
    loader = ExtensionFileLoader(MODULE, path)
    specification = importlib.util.spec_from_file_location(MODULE, path, loader=loader)
    assert specification is not None
    module = importlib.util.module_from_spec(specification)
    loader.exec_module(module)
    return module


class _WithoutEffect:
    """A module whose functions leave everything as it was, and return zeros."""

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        value = getattr(self._module, name)
        return _without_effect(value) if callable(value) else value


def _without_effect(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        tensors = list(_tensors([*arguments, *named.values()]))
        if not tensors:
            return None  # it may work on addresses, and then only not calling it undoes it
        before = [tensor.clone() for tensor in tensors]
        result = function(*arguments, **named)
        for tensor, values in zip(tensors, before, strict=True):
            tensor.copy_(values)
        return _zeros(result)

    return call


def _tensors(values: Any) -> list[torch.Tensor]:
    if isinstance(values, torch.Tensor):
        return [values]
    if isinstance(values, list | tuple):
        return [tensor for value in values for tensor in _tensors(value)]
    return []


def _zeros(result: Any) -> Any:
    if isinstance(result, torch.Tensor):
        return torch.zeros_like(result)
    if isinstance(result, list | tuple):
        return type(result)(_zeros(value) for value in result)
    return type(result)() if isinstance(result, int | float) else result
