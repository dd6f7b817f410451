"""What a module holds beside its arguments, and whether a kernel was verified for it."""

from __future__ import annotations

import functools
import hashlib
import itertools
import re
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import _disable_current_modes

_STATISTICS = frozenset({"running_mean", "running_var", "num_batches_tracked"})
OF_NN = frozenset(vars(torch.nn.Module()))
# Ours, and marks that torch.compile and libraries leave.
_BOOKKEEPING = ("_kernel_smith", "_is_", "_compiled_call_impl")
HOOKS = ("_forward_hooks", "_forward_pre_hooks")
MOST_ELEMENTS = 4096
"""Of a tensor whose values are part of what a kernel was verified for; no task has larger ones."""
_PLAIN = (torch.Tensor, torch.nn.Parameter)
_MODAL = (
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.modules.dropout._DropoutNd,
    torch.nn.RReLU,
    torch.nn.MultiheadAttention,
    torch.nn.TransformerEncoderLayer,
)
_MODE_WORD = re.compile(r"\btraining\b|dropout|rrelu|batch_norm")


def fingerprint(module: torch.nn.Module) -> str:
    """Classes, settings and sizes of a module and of all within it.

    Of parameters and buffers no values; of tensors that are neither, a digest of them.
    """
    lines = []
    for path, part in module.named_modules(remove_duplicate=False):
        kind = type(part)
        plain = getattr(kind, "replaced_class", kind)
        settings = {name: _spelled(value) for name, value in _settings(part)}
        lines.append(f"{path} {plain.__module__}.{plain.__qualname__} {settings}")
    for path, tensor in tensors_of(module):
        lines.append(f"{path} {tuple(tensor.shape)} {tensor.dtype}")
    return "\n".join(lines)


def _settings(module: torch.nn.Module) -> Iterator[tuple[str, Any]]:
    for name, value in sorted(vars(module).items()):
        if name not in OF_NN and not name.startswith(_BOOKKEEPING):
            yield name, value


def other_setting(live: torch.nn.Module, verified: torch.nn.Module) -> str | None:
    """Return the first setting that both have and that differs; None if there is none."""
    for path, part in verified.named_modules():
        try:
            mine = dict(_settings(live.get_submodule(path)))
        except AttributeError:
            continue  # parts may be called otherwise
        for name, value in _settings(part):
            if name in mine and _spelled(mine[name]) != _spelled(value):
                return f"{path}.{name}" if path else name
    return None


def _spelled(value: Any) -> str:
    if isinstance(value, (tuple, list)):
        return f"{type(value).__name__}{[_spelled(item) for item in value]}"
    if isinstance(value, dict):
        return f"{type(value).__name__}{[(str(k), _spelled(item)) for k, item in value.items()]}"
    if type(value) is torch.Tensor:
        return f"Tensor {tuple(value.shape)} {value.dtype} {_digest(value)}"
    if isinstance(value, (bool, int, float, str, type(None), torch.dtype, torch.Size)):
        return repr(value)
    if type(value) is functools.partial:
        return f"partial{_spelled([value.func, value.args, value.keywords])}"
    if callable(value) and hasattr(value, "__qualname__"):
        return str(value.__qualname__)
    fields = getattr(value, "__dict__", None)
    if fields and not isinstance(value, torch.Tensor):
        plain = {k: v for k, v in fields.items() if isinstance(v, (bool, int, float, str))}
        return f"{type(value).__qualname__}{sorted(plain.items())}"
    return type(value).__qualname__


def _digest(tensor: torch.Tensor) -> str:
    """Return the values of a tensor in short; of one that is large, or has none, nothing."""
    if tensor.is_meta or tensor.layout is not torch.strided or tensor.numel() > MOST_ELEMENTS:
        return ""
    with _disable_current_modes():  # a program may be traced meanwhile
        plain = tensor.detach().cpu().resolve_conj().resolve_neg().contiguous()
        return hashlib.sha256(plain.view(-1).view(torch.uint8).numpy().tobytes()).hexdigest()[:12]


def tensors_of(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and buffers by their names, those that are shared under each name."""
    return itertools.chain(
        module.named_parameters(remove_duplicate=False),
        module.named_buffers(remove_duplicate=False),
    )


def depends_on_mode(module: torch.nn.Module, text: str) -> bool:
    """Tell whether training and inference may differ, as far as classes and the text can tell."""
    return any(isinstance(part, _MODAL) for part in module.modules()) or bool(
        _MODE_WORD.search(text)
    )


def is_statistic(name: str) -> bool:
    """Tell whether a buffer holds running statistics, which a kernel reads where it is called."""
    return name.rpartition(".")[2] in _STATISTICS


def difference(
    live: torch.nn.Module, verified: torch.nn.Module, device: torch.device
) -> str | None:
    """Why a kernel cannot stand in for a module with this state; None if it can."""
    held = dict(tensors_of(live))
    buffers = {name for name, _ in verified.named_buffers(remove_duplicate=False)}
    for name, expected in tensors_of(verified):
        tensor = held.pop(name, None)
        if tensor is None:
            return f"{name} is missing"
        if not _is_plain(tensor):
            return f"{name} is a {type(tensor).__name__}"
        if (tensor.shape, tensor.dtype) != (expected.shape, expected.dtype):
            return f"{name} is {tuple(tensor.shape)} of {tensor.dtype}"
        if tensor.device != device or tensor.stride() != expected.stride():
            return f"{name} is on {tensor.device} with strides {tensor.stride()}"
        relied_on = name in buffers and not is_statistic(name)
        if relied_on and not torch.equal(tensor, expected.to(tensor.device)):
            return f"the values of buffer {name} differ"
    if held:
        return f"{next(iter(held))} is unknown to the kernel"
    for path, part in live.named_modules():
        if path and any(getattr(part, hooks) for hooks in HOOKS):
            return f"{path} has hooks"
    return None


def _is_plain(tensor: torch.Tensor) -> bool:
    """Tell whether its memory holds its values: not so of types of libraries, nor of lazy views."""
    kind = type(tensor)
    of_tracing = kind.__module__.startswith("torch._subclasses")
    return (kind in _PLAIN or of_tracing) and not tensor.is_conj() and not tensor.is_neg()


def forget_values(module: torch.nn.Module) -> None:
    """Leave of all parameters what they are like, and give their memory back."""
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                like = torch.empty_strided(
                    parameter.shape, parameter.stride(), dtype=parameter.dtype, device="meta"
                )
                part._parameters[name] = torch.nn.Parameter(like, parameter.requires_grad)


def bind(kernel: torch.nn.Module, find: Callable[[str], torch.Tensor | None]) -> None:
    """Put live tensors where a kernel's module has parameters and statistics of the same names."""
    for path, part in kernel.named_modules():
        prefix = f"{path}." if path else ""
        for name in part._parameters:
            _put(part._parameters, name, find(prefix + name))
        for name in part._buffers:
            if is_statistic(name):
                _put(part._buffers, name, find(prefix + name))


def _put(table: dict[str, Any], name: str, tensor: torch.Tensor | None) -> None:
    own = table[name]
    if tensor is not None and own is not None and own.shape == tensor.shape:
        table[name] = tensor
