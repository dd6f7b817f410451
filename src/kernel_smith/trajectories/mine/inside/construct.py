"""Making a module of a mined class, with arguments that are guessed."""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from typing import Any, NamedTuple

import torch

from kernel_smith.trajectories.mine.closure import Extract
from kernel_smith.trajectories.mine.guesses import Code, guess, guess_field
from kernel_smith.trajectories.mine.inside.objects import constructor_arguments
from kernel_smith.trajectories.mine.refusal import Refused

_MOST_PARAMETERS = 30_000_000
_MOST_UNSET = 40
# Blocks whose last layer widens again: the inner width is then a quarter of the outer one.
_INNER = frozenset({"planes", "mid_channels", "squeeze_planes", "bottleneck_channels"})


class Made(NamedTuple):
    model: torch.nn.Module
    plan: dict[str, Any]
    """Fields of a `Plan`, as far as they are known."""


def constructions(kind: type[torch.nn.Module], extract: Extract) -> Iterator[Made]:
    """Each way that works; `Refused` if none does."""
    failure: Exception | None = None
    any_made = False
    for quarter in (False, True):
        plan = _arguments(kind, extract, quarter=quarter)
        if quarter and not _INNER & plan["init"].keys():
            continue
        try:
            made = _make(kind, plan)
        except Refused:
            raise
        except Exception as error:
            failure = error
            continue
        any_made = True
        yield made
    if not any_made:
        raise Refused("constructor-fails", f"{type(failure).__name__}: {failure}"[:300])


def _arguments(kind: type[torch.nn.Module], extract: Extract, *, quarter: bool) -> dict[str, Any]:
    plan: dict[str, Any] = {"init": {}, "code": {}, "config": None}
    for parameter in inspect.signature(kind).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        name = parameter.name
        if name == "config":
            plan["config"] = {
                field: guess_field(field, extract.config_defaults)
                for field in extract.config_fields
            }
        elif parameter.default is parameter.empty:
            annotation = parameter.annotation
            hint = "" if annotation is parameter.empty else str(annotation)
            if isinstance(annotation, type):
                hint = annotation.__name__
            value = guess(name, hint, extract.text)
            if isinstance(value, Code):
                plan["code"][name] = value.name
            else:
                plan["init"][name] = 16 if quarter and name in _INNER else value
    return plan


def _make(kind: type[torch.nn.Module], plan: dict[str, Any]) -> Made:
    arguments = constructor_arguments(plan)
    with _unset_memory_told():
        model = kind(**arguments).eval()
    parameters = dict(model.named_parameters())
    if sum(p.numel() for p in parameters.values()) > _MOST_PARAMETERS:
        raise Refused("too-large", "too many parameters")
    plan["unset"] = [name for name, p in parameters.items() if bool(p.isnan().any())]
    if len(plan["unset"]) > _MOST_UNSET:
        raise Refused("unset-parameters", f"{len(plan['unset'])} of them")
    if any(buffer.is_floating_point() and buffer.isnan().any() for buffer in model.buffers()):
        raise Refused("unset-parameters", "a buffer")
    plan["constant"] = any(p.numel() > 1 and bool(p.min() == p.max()) for p in parameters.values())
    for name in plan["unset"]:
        torch.nn.init.normal_(parameters[name], std=0.1)
    return Made(model, plan)


@contextlib.contextmanager
def _unset_memory_told() -> Iterator[None]:
    """Meanwhile, memory that nobody has set holds NaN, and so can be told from values."""
    # `use_deterministic_algorithms` does the same, and imports the compiler to tell it, too.
    torch.set_deterministic_debug_mode("warn")
    # A property of the module, which type checkers do not see.
    setattr(torch.utils.deterministic, "fill_uninitialized_memory", True)  # noqa: B010
    try:
        yield
    finally:
        torch.set_deterministic_debug_mode("default")
