"""A module of the user's own class whose verified calls are answered by a kernel.

Nothing of the module changes but its class: parameters, buffers, hooks and the names in
`state_dict` stay what they are. Every other call goes to the class's own `forward`.
"""

from __future__ import annotations

import copy
import functools
import inspect
import threading
import types
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch
from torch.autograd import forward_ad

from .signatures import (
    Unfamiliar,
    by_position,
    describe,
    in_form,
    tensors_in,
    without_idle_strides,
)
from .state import difference, fingerprint
from .traced import call_traced, form_of, needs_grad
from .watched import Watched, relied_on

if TYPE_CHECKING:
    from .replacement import Replacement

_MOST_KEYS = 1024
_ATTACHED = "_kernel_smith"
_OTHER = "other arguments"

_transforms = torch._C._functorch.peek_interpreter_stack
_modes = torch._C._len_torch_dispatch_stack
_is_tracing = torch._C._is_tracing


@dataclass(frozen=True)
class Counts:
    """How many calls a kernel has answered, and why the reference has answered the others."""

    kernel: int
    reference: dict[str, int]

    def __str__(self) -> str:
        others = ", ".join(f"{count} {reason}" for reason, count in self.reference.items())
        return f"{self.kernel} by the kernel; by the reference: {others or 'none'}"


class _Tally:
    """The calls of one thread, which outlive it."""

    def __init__(self) -> None:
        self.answered = 0
        self.refused: Counter[str] = Counter()


class _Thread:
    """What one thread has of a kernel: a program may keep scratch memory between its calls."""

    def __init__(self) -> None:
        self.kernel: torch.nn.Module | None = None
        self.watched = Watched()
        self.refusal: str | None = None
        self.generation = -1
        self.tally = _Tally()


class Attachment:
    """The kernel of one module."""

    def __init__(self, replacement: Replacement, module: torch.nn.Module) -> None:
        self.replacement = replacement
        self.signatures = replacement.signatures
        self.fingerprint = fingerprint(module)
        self._module = weakref.ref(module)
        self.forward_signature = inspect.signature(type(module).forward.__get__(module))
        self.generation = 0
        self._device_type = replacement.spec.device
        self._depends_on_mode = replacement.depends_on_mode
        # The imaginary part of a conjugate has elements that are to be negated when they are read.
        self._may_be_lazy = any(
            tensor.is_complex() or tensor.numel() == 1 or not tensor.is_contiguous()
            for one in self.signatures
            for tensor in tensors_in(one.arguments)
        )
        self.has_names: bool | None = None  # do results? To know takes the compiler's import
        self._forms: dict[Any, Any] = {}
        self._keys: dict[Any, bool] = {}  # what was asked before
        self._local = threading.local()
        self._tallies: list[_Tally] = []
        self._lock = threading.Lock()

    def forget(self) -> None:
        """Look at the module's state again before the next call."""
        self.generation += 1

    @property
    def counts(self) -> Counts:
        """The calls so far, of all threads."""
        with self._lock:
            refused = sum((tally.refused for tally in self._tallies), Counter[str]())
            return Counts(sum(tally.answered for tally in self._tallies), dict(refused))

    def choose(
        self, module: torch.nn.Module, arguments: tuple[Any, ...]
    ) -> Callable[..., Any] | None:
        """Return the kernel's `forward` for a call; None where the reference is to answer."""
        try:
            mine: _Thread = self._local.thread
        except AttributeError:
            mine = self._enter()
        refusal = self._refusal(mine, module, arguments)
        if refusal is not None:
            mine.tally.refused[refusal] += 1
            return None
        assert mine.kernel is not None
        forward = mine.kernel.forward
        if self.has_names:
            form = self._form(module, arguments)
            if form is None:
                mine.tally.refused["results of an unknown type"] += 1
                return None
            forward = functools.partial(_answer, forward, form)
        mine.tally.answered += 1
        return forward

    def _form(self, module: torch.nn.Module, arguments: tuple[Any, ...]) -> Any:
        """Return what the module's own code returns for such arguments: a task has types of its
        own."""
        key = tuple([describe(one) for one in arguments])
        if key not in self._forms:
            kind = getattr(type(module), "replaced_class", type(module))
            self._forms[key] = form_of(functools.partial(kind.forward, module), arguments)
        return self._forms[key]

    def settle_names(self, module: torch.nn.Module, arguments: tuple[Any, ...], result: Any) -> Any:
        """Learn whether the module's own results have names, by the first that needs it: one of
        several tensors, which may have to be given again."""
        self.has_names = "named" in self.replacement.results
        if not self.has_names:
            return result
        self._local.thread.tally.answered -= 1
        return module.forward(*arguments)

    def kind_of_result(self, number: int) -> str:
        """Tell how the reference returns the results of a verified call, while torch traces."""
        return self.replacement.results[number]

    def _enter(self) -> _Thread:
        mine = self._local.thread = _Thread()
        with self._lock:
            self._tallies.append(mine.tally)
        return mine

    def _refusal(
        self, mine: _Thread, module: torch.nn.Module, arguments: tuple[Any, ...]
    ) -> str | None:
        if _is_tracing():  # where even sizes are tensors
            return "traced by torch.jit"
        try:
            key = tuple([describe(one) for one in arguments])
        except (Unfamiliar, RuntimeError):  # RuntimeError: tensors without strides
            return _OTHER
        known = self._keys.get(key)
        if not (self._is_verified(key) if known is None else known):
            return _OTHER
        if _transforms() is not None:
            return "transformed by torch.func"
        if _modes():
            return "watched by a dispatch mode"
        if torch.is_autocast_enabled(self._device_type):
            return "autocast"
        if torch.get_default_dtype() is not torch.float32:
            return "another default dtype"
        if forward_ad._current_level >= 0:
            return "derivatives forward"
        if mine.generation != self.generation or not mine.watched.unchanged():
            self._prepare(mine, module)
        if mine.refusal is not None:
            return mine.refusal
        if self._depends_on_mode and not self.in_verified_mode(mine.watched.parts):
            return "training" if module.training else "inference"
        if torch.is_grad_enabled() and needs_grad(module, arguments):
            return "gradients"
        if self._may_be_lazy and any(t.is_conj() or t.is_neg() for t in tensors_in(arguments)):
            return _OTHER
        return None

    def _is_verified(self, key: tuple[Any, ...]) -> bool:
        """Answer for arguments that were not seen before, and remember the answer."""
        idle = without_idle_strides(key)
        known = any(idle == without_idle_strides(one.key) for one in self.signatures)
        if len(self._keys) >= _MOST_KEYS:
            self._keys = {}
        self._keys[key] = known
        return known

    def _prepare(self, mine: _Thread, module: torch.nn.Module) -> None:
        mine.generation = self.generation
        mine.watched = Watched.of(module)
        mine.refusal = self.state_refusal(module)
        if mine.refusal is None:
            if mine.kernel is None:
                mine.kernel = self.replacement.new_kernel()
            self.replacement.bind(mine.kernel, module)

    def state_refusal(self, module: torch.nn.Module) -> str | None:
        """Why no call is answered while the module is as it is; None if calls are."""
        found = difference(module, self.replacement.verified, self.replacement.device)
        if found is not None:
            return f"other state: {found}"
        return None if fingerprint(module) == self.fingerprint else "changed settings"

    def in_verified_mode(self, parts: Iterable[torch.nn.Module]) -> bool:
        """Tell whether all parts train, or infer, as they did when calls were verified."""
        verified = self.replacement.verified.training
        return all(part.training is verified for part in parts)

    def fits_now(self) -> bool:
        """Tell whether verified calls may be answered, asked while torch traces."""
        module = self._module()
        # A graph would not notice that something was written to a buffer later.
        if module is None or relied_on(module) or self.state_refusal(module) is not None:
            return False
        if torch.get_default_dtype() is not torch.float32:
            return False
        return not self._depends_on_mode or self.in_verified_mode(module.modules())

    # What `torch.compiler.assume_constant_result` does, which would import half of the compiler:
    # asked once per tracing, and not followed. What it depends on is guarded by torch.
    fits_now._dynamo_marked_constant = True  # type: ignore[attr-defined]
    kind_of_result._dynamo_marked_constant = True  # type: ignore[attr-defined]


def _answer(forward: Callable[..., Any], form: Any, *arguments: Any) -> Any:
    return in_form(form, forward(*arguments))


class DropIn(torch.nn.Module):
    """Mixed into the class of a module whose calls a kernel may answer."""

    replaced_class: type[torch.nn.Module]
    _kernel_smith: Attachment

    def forward(self, *arguments: Any, **named: Any) -> Any:
        attachment = self._kernel_smith
        if named:
            try:
                arguments, named = by_position(attachment.forward_signature, arguments, named), {}
            except TypeError:  # a wrong call, of which the reference complains in its own words
                return super().forward(*arguments, **named)
        if torch.compiler.is_compiling():
            return call_traced(self, super().forward, arguments)
        forward = attachment.choose(self, arguments)
        if forward is None:
            return super().forward(*arguments)
        result = forward(*arguments)
        if type(result) is not torch.Tensor and attachment.has_names is None:
            return attachment.settle_names(self, arguments, result)
        return result

    @property
    def counts(self) -> Counts:
        """Which calls were answered by whom."""
        return self._kernel_smith.counts

    def extra_repr(self) -> str:
        own = super().extra_repr()
        return f"{own}, " * bool(own) + f"calls: {self.counts}"

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, value)
        if name != "training":  # which every call looks at
            self._kernel_smith.forget()

    def _apply(self, *arguments: Any, **named: Any) -> Any:
        applied = super()._apply(*arguments, **named)  # type: ignore[no-untyped-call]
        self._kernel_smith.forget()
        return applied

    def __prepare_scriptable__(self) -> torch.nn.Module:
        """Return what `torch.jit.script` takes: it can follow the reference, and nothing of this
        class."""
        return detached(self)

    def __reduce_ex__(self, protocol: Any) -> Any:
        # The class exists in this process alone; the module and the kernel are put together anew.
        replacement = self._kernel_smith.replacement
        plain = detached(self)
        if isinstance(plain, replacement.reference.Model):  # as does the class of our own reference
            return _revived, (replacement, vars(plain))
        return attached, (plain, replacement)


def attached(module: torch.nn.Module, replacement: Replacement) -> torch.nn.Module:
    """Let the kernel answer calls of this very module from now on."""
    kind = type(module)
    attachment = Attachment(replacement, module)
    vars(module)[_ATTACHED] = attachment
    module.__class__ = _mixed(kind)
    return module


def _mixed(kind: type[torch.nn.Module]) -> type[DropIn]:
    """Return the class of drop-ins for modules of a class: one for all, as programs may compare
    types."""
    for known in kind.__subclasses__():
        if issubclass(known, DropIn) and known.replaced_class is kind:
            return known
    names = {
        "replaced_class": kind,
        "forward": _forward_like(kind),
        "__module__": kind.__module__,
        "__doc__": kind.__doc__,
    }
    return type(kind.__name__, (DropIn, kind), names)


def _forward_like(kind: type[torch.nn.Module]) -> Callable[..., Any]:
    """`DropIn.forward`, which says that it takes what the class's own does: programs ask."""
    own = DropIn.forward
    copied = types.FunctionType(own.__code__, own.__globals__, "forward", None, own.__closure__)
    copied.__signature__ = inspect.signature(kind.forward)  # type: ignore[attr-defined]
    copied.__doc__ = kind.forward.__doc__
    return copied


def _revived(replacement: Replacement, state: dict[str, Any]) -> torch.nn.Module:
    plain = replacement.reference.Model.__new__(replacement.reference.Model)
    vars(plain).update(state)
    return attached(plain, replacement)


def detach(module: torch.nn.Module) -> None:
    """Make a module what it was before `attached`."""
    assert isinstance(module, DropIn)
    object.__setattr__(module, "__class__", module.replaced_class)
    del vars(module)[_ATTACHED]


def detached(module: DropIn) -> torch.nn.Module:
    """Return a module of the class that was replaced, which shares all that this one holds."""
    plain = module.replaced_class.__new__(module.replaced_class)
    vars(plain).update({k: v for k, v in vars(module).items() if k != _ATTACHED})
    return plain


def twin(module: torch.nn.Module) -> torch.nn.Module:
    """Another module of the same class that shares parameters, buffers and hooks."""
    return detached(module) if isinstance(module, DropIn) else copy.copy(module)
