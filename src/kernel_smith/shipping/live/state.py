"""What a module holds, as the body of a constructor that builds it anew.

Settings keep their values. Parameters are drawn at random, as large as they are in the module: a
task is about every value that they may have. Buffers keep theirs, since a kernel may rely on them.
"""

from __future__ import annotations

import inspect
import re
import types
from typing import Any

import torch

from kernel_smith.shipping.live.sources import Sources, literal, public_name, refused
from kernel_smith.shipping.runtime.state import (
    MOST_ELEMENTS,
    OF_NN,
    fingerprint,
    is_statistic,
)

BLANK = '''\
def blank(kind):
    """A module of a class, with nothing in it."""
    module = kind.__new__(kind)
    torch.nn.Module.__init__(module)
    return module'''


class Rebuilding:
    """The lines of a constructor; `left_out` names settings that have no text."""

    def __init__(self, sources: Sources) -> None:
        self.lines = ["torch.nn.Module.__init__(self)"]
        self.left_out: dict[str, str] = {}
        self._sources = sources
        self._known: dict[int, str] = {}

    def rebuild(self, module: torch.nn.Module, target: str = "self") -> None:
        """Put everything that a module holds where `target` is."""
        self._known[id(module)] = target
        for name, value in vars(module).items():
            if name not in OF_NN:
                self._set(target, name, value)
        for name, parameter in module._parameters.items():
            self._add_parameter(target, name, parameter)
        for name, buffer in module._buffers.items():
            persistent = name not in module._non_persistent_buffers_set
            text = "None" if buffer is None else buffer_text(f"{target}.{name}", name, buffer)
            shown = "" if persistent else ", persistent=False"
            self.lines.append(f"{target}.register_buffer({name!r}, {text}{shown})")
        for name, child in module._modules.items():
            self._add_child(module, target, name, child)

    def _set(self, target: str, name: str, value: Any) -> None:
        text = self._sources.text_of(value)
        if text is None and isinstance(value, torch.Tensor) and value.numel() <= MOST_ELEMENTS:
            text = buffer_text(f"{target}.{name}", name, value)
        if text is None:
            text = self._namespace(value)
        if text is None:
            self.left_out[name] = type(value).__qualname__
        else:
            self.lines.append(f"{target}.{name} = {text}")

    def _namespace(self, value: Any) -> str | None:
        """Return a configuration as a bag of its plain values, of which only those are kept that
        the source speaks of."""
        fields = getattr(value, "__dict__", None)
        if not fields or callable(value):
            return None
        spoken = "\n".join(self._sources.statements) + self._sources.main_text
        texts = {
            name: literal(getattr(value, name))
            for name in dict.fromkeys([*fields, *_properties(type(value))])
            if re.search(rf"\.{name}\b", spoken)
        }
        self._sources.need("SimpleNamespace", types.SimpleNamespace)
        inner = ", ".join(f"{k}={text}" for k, text in texts.items() if text is not None)
        return f"SimpleNamespace({inner})"

    def _add_parameter(self, target: str, name: str, parameter: torch.nn.Parameter | None) -> None:
        if parameter is None:
            self.lines.append(f"{target}.register_parameter({name!r}, None)")
            return
        text = self._known.get(id(parameter))
        if text is None:
            self._known[id(parameter)] = f"{target}.{name}"
            frozen = "" if parameter.requires_grad else ", requires_grad=False"
            text = f"torch.nn.Parameter({drawn(parameter.detach())}{frozen})"
        self.lines.append(f"{target}.{name} = {text}")

    def _add_child(
        self, parent: torch.nn.Module, target: str, name: str, child: torch.nn.Module | None
    ) -> None:
        place = f"{target}.{name}"
        if not name.isidentifier():
            is_list = isinstance(parent, torch.nn.Sequential | torch.nn.ModuleList)
            place = f"{target}[{name}]" if is_list else f"{target}.get_submodule({name!r})"
        if child is None or id(child) in self._known:
            text: str | None = self._known.get(id(child), "None")
        elif isinstance(child, torch.nn.Sequential | torch.nn.ModuleList | torch.nn.ModuleDict):
            text = f"{public_name(type(child))}()" if public_name(type(child)) else None
        else:
            text = constructor_text(child)
        made = text or self._blank(child)
        named = name.isidentifier()
        self.lines.append(
            f"{place} = {made}" if named else f"{target}.add_module({name!r}, {made})"
        )
        if child is None or id(child) in self._known:
            return
        if text is None or child._modules:
            self.rebuild(child, place)
        else:
            self._note(child, place)

    def _blank(self, child: Any) -> str:
        kind = type(child)
        if (public := public_name(kind)) is None:
            self._sources.need(kind.__name__, kind)
            public = kind.__name__
        if BLANK not in self._sources.statements:
            self._sources.statements.append(BLANK)
        return f"blank({public})"

    def _note(self, child: torch.nn.Module, place: str) -> None:
        self._known.setdefault(id(child), place)
        for name, parameter in child.named_parameters():
            self._known.setdefault(id(parameter), f"{place}.{name}")


def _properties(kind: type) -> list[str]:
    """Return what instances compute when they are asked for it."""
    members = (item for base in kind.__mro__ for item in vars(base).items())
    return [name for name, member in members if isinstance(member, property)]


def constructor_text(module: torch.nn.Module) -> str | None:
    """Return a call of torch's own constructor that gives such a module; None if there is none."""
    kind = type(module)
    name = public_name(kind)
    if name is None:
        return None
    arguments = []
    for parameter in list(inspect.signature(kind.__init__).parameters.values())[1:]:
        value = getattr(module, parameter.name, inspect.Parameter.empty)
        if parameter.name in ("device", "dtype") or parameter.name.startswith("_"):
            continue
        if parameter.name in module._parameters:  # the constructor asks whether there is one
            value = value is not None
        text = literal(value)
        if text is None:
            if parameter.default is inspect.Parameter.empty and parameter.kind < 2:
                return None
            continue
        if value == parameter.default:
            continue
        required = parameter.default is inspect.Parameter.empty
        arguments.append(text if required else f"{parameter.name}={text}")
    dtypes = {p.dtype for p in module.parameters()} - {torch.get_default_dtype()}
    converted = ""
    if len(dtypes) == 1:
        dtype = next(iter(dtypes))
        if "dtype" in inspect.signature(kind.__init__).parameters:
            arguments.append(f"dtype={dtype}")
        else:
            converted = f".to({dtype})"
    text = f"{name}({', '.join(arguments)}){converted}"
    return text if _gives(text, module) else None


def _gives(text: str, module: torch.nn.Module) -> bool:
    try:
        with torch.device("meta"):
            built = eval(text, {"torch": torch})
    except Exception:  # whatever a constructor does not like
        return False
    plain = all(is_statistic(name) for name, _ in module.named_buffers())
    return plain and fingerprint(built) == fingerprint(module)


def drawn(values: torch.Tensor) -> str:
    """Values like these: one constant, or normally distributed with this mean and spread."""
    shape = ", ".join(map(str, values.shape)) or "()"
    dtype = "" if values.dtype is torch.get_default_dtype() else f", dtype={values.dtype}"
    if not values.is_floating_point():
        return tensor_text(values)
    wide = values.double()
    if values.numel() == 0 or bool((wide == wide.flatten()[0]).all()):
        constant = float(wide.flatten()[0]) if values.numel() else 0.0
        return f"torch.full({tuple(values.shape)}, {constant!r}{dtype})"
    mean, spread = float(wide.mean()), float(wide.std())
    if not (abs(mean) < 1e30 and 0 < spread < 1e30):
        raise refused("a parameter of the module is not finite")
    factor = "" if abs(spread - 1) < 0.1 else f" * {spread:.3g}"
    return f"torch.randn({shape}{dtype}){factor}{shift_text(mean, spread, values.numel())}"


def shift_text(mean: float, spread: float, elements: int) -> str:
    """Return what to add to numbers around zero; nothing where the mean may be an accident."""
    accident = 4 * spread / elements**0.5
    return "" if abs(mean) <= max(accident, spread / 20) else f" + {mean:.3g}"


def buffer_text(path: str, name: str, buffer: torch.Tensor) -> str:
    """Return a buffer with its values."""
    flat = buffer.detach().flatten()
    if flat.numel() and bool((flat == flat[0]).all()):
        dtype = "" if buffer.dtype is torch.get_default_dtype() else f", dtype={buffer.dtype}"
        return f"torch.full({tuple(buffer.shape)}, {literal(flat[0].item())}{dtype})"
    if is_statistic(name):
        return drawn(buffer) + (".abs()" if name == "running_var" else "")
    if flat.numel() > MOST_ELEMENTS:
        raise refused(
            f"the buffer {path} has {flat.numel()} elements, expected at most {MOST_ELEMENTS}: "
            "its values are part of the task",
            hint="compute it in forward, or write a task file that computes it "
            "(docs/task-format.md)",
        )
    return tensor_text(buffer)


def tensor_text(values: torch.Tensor) -> str:
    """Return a tensor, element by element."""
    return f"torch.tensor({literal(values.tolist())}, dtype={values.dtype})"
