"""What a module holds beside its arguments, and whether a kernel was verified for it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch

_STATISTICS = frozenset({"running_mean", "running_var", "num_batches_tracked"})
_OF_NN = frozenset(vars(torch.nn.Module()))
# Ours, and marks that torch.compile and libraries leave.
_BOOKKEEPING = ("_kernel_smith", "_is_", "_compiled_call_impl")
_HOOKS = ("_forward_hooks", "_forward_pre_hooks")
_MODAL = (
    torch.nn.modules.batchnorm._NormBase,
    torch.nn.modules.dropout._DropoutNd,
    torch.nn.RReLU,
    torch.nn.MultiheadAttention,
    torch.nn.TransformerEncoderLayer,
)
_MODE_WORD = re.compile(r"\btraining\b|dropout|rrelu|batch_norm")


def fingerprint(module: torch.nn.Module) -> str:
    """Classes, settings and sizes of a module and of all within it; no values of tensors."""
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
        if name not in _OF_NN and not name.startswith(_BOOKKEEPING):
            yield name, value


def other_setting(live: torch.nn.Module, verified: torch.nn.Module) -> str | None:
    """The first setting that both have and that differs; None if there is none."""
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
    if isinstance(value, (bool, int, float, str, type(None), torch.dtype, torch.Size)):
        return repr(value)
    if callable(value):
        return str(getattr(value, "__qualname__", type(value).__qualname__))
    fields = getattr(value, "__dict__", None)
    if fields and not isinstance(value, torch.Tensor):
        plain = {k: v for k, v in fields.items() if isinstance(v, (bool, int, float, str))}
        return f"{type(value).__qualname__}{sorted(plain.items())}"
    return type(value).__qualname__


def tensors_of(module: torch.nn.Module) -> Iterator[tuple[str, torch.Tensor]]:
    """Parameters and buffers by their names, those that are shared under each name."""
    return itertools.chain(
        module.named_parameters(remove_duplicate=False),
        module.named_buffers(remove_duplicate=False),
    )


def depends_on_mode(module: torch.nn.Module, text: str) -> bool:
    """Whether training and inference may differ, as far as classes and the text can tell."""
    return any(isinstance(part, _MODAL) for part in module.modules()) or bool(
        _MODE_WORD.search(text)
    )


def is_statistic(name: str) -> bool:
    """Whether a buffer holds running statistics, which a kernel reads where it is called."""
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
        if (tensor.shape, tensor.dtype) != (expected.shape, expected.dtype):
            return f"{name} is {tuple(tensor.shape)} of {tensor.dtype}"
        if tensor.device != device or tensor.stride() != expected.stride():
            return f"{name} is on {tensor.device} with strides {tensor.stride()}"
        if name in buffers and not is_statistic(name) and not _equal(tensor, expected):
            return f"the values of buffer {name} differ"
    if held:
        return f"{next(iter(held))} is unknown to the kernel"
    for path, part in live.named_modules():
        if path and any(getattr(part, hooks) for hooks in _HOOKS):
            return f"{path} has hooks"
    return None


def _equal(tensor: torch.Tensor, expected: torch.Tensor) -> bool:
    if type(tensor) not in (torch.Tensor, torch.nn.Buffer):
        return True  # while torch traces there are no values; they were compared before
    return torch.equal(tensor, expected.to(tensor.device))


def forget_values(module: torch.nn.Module) -> None:
    """Leave of all parameters what they are like, and give their memory back."""
    for part in module.modules():
        for name, parameter in part._parameters.items():
            if parameter is not None:
                like = torch.empty_strided(
                    parameter.shape, parameter.stride(), dtype=parameter.dtype, device="meta"
                )
                part._parameters[name] = torch.nn.Parameter(like, parameter.requires_grad)


@dataclass(frozen=True)
class Watched:
    """The places where a module keeps its state, to notice when something else is put there."""

    places: tuple[tuple[dict[str, Any], str, Any], ...]
    buffers: tuple[tuple[torch.Tensor, int], ...]
    hooks: tuple[tuple[dict[int, Any], int], ...] = ()
    parts: tuple[torch.nn.Module, ...] = ()

    @classmethod
    def of(cls, module: torch.nn.Module) -> Watched:
        """The state as it is now."""
        places = []
        for part in module.modules():
            for table in (part._modules, part._parameters, part._buffers):
                places += [(table, name, value) for name, value in table.items()]
        versioned = [
            (buffer, buffer._version)
            for name, buffer in module.named_buffers()
            if not is_statistic(name) and not buffer.is_inference()
        ]
        parts = tuple(module.modules())
        hooks = [getattr(part, name) for part in parts[1:] for name in _HOOKS]
        counted = tuple((one, len(one)) for one in hooks)
        return cls(tuple(places), tuple(versioned), counted, parts)

    def unchanged(self) -> bool:
        """Whether everything is still in its place."""
        for table, name, value in self.places:
            if table.get(name) is not value:
                return False
        for hooks, count in self.hooks:
            if len(hooks) != count:
                return False
        return self.same_values()

    def same_values(self) -> bool:
        """Whether no buffer was written to."""
        if not self.buffers:
            return True
        return all(buffer._version == version for buffer, version in self.buffers)


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
