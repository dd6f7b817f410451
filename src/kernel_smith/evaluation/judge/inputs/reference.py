"""The task, executed: its inputs from secret seeds, its reference, and the fp64 oracle.

Only the judge imports this. A task file is the user's own and is trusted, as a test file would be.
"""

from __future__ import annotations

import contextlib
import copy
import inspect
import linecache
import random
import secrets
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy
import torch

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.sandbox.tree import (
    UnsupportedValue,
    flatten,
    flatten_result,
    unflatten,
)
from kernel_smith.records import Task, Variant, Workload

_LARGE, _SMALL = 1e3, 1e-3
_SPIKES, _SPIKE = 8, 1e3
_TIE_LEVELS = 4


@dataclass(frozen=True)
class InputSet:
    """The arguments of one call: their nesting, and the tensors in it."""

    template: Any
    tensors: list[torch.Tensor]
    label: str = "author"

    def arguments(self) -> list[Any]:
        arguments: list[Any] = unflatten(self.template, self.tensors)
        return arguments

    def fits_in_place_of(self, other: InputSet) -> bool:
        """Do both have the same nesting, with tensors that lie in memory in the same way?"""
        pairs = zip(self.tensors, other.tensors, strict=False)
        return self.template == other.template and all(
            mine.shape == theirs.shape and mine.stride() == theirs.stride()
            for mine, theirs in pairs
        )


@dataclass(frozen=True)
class Result:
    """What one call returned: its nesting, and the tensors in it."""

    tree: Any
    tensors: list[torch.Tensor]


def secret_seed() -> int:
    return secrets.randbits(63)


class Reference:
    """A task's code, loaded into the judge."""

    def __init__(
        self, task: Task, device: str = "cpu", pause: Callable[[], None] = lambda: None
    ) -> None:
        self.task = task
        self.device = device
        self._pause = pause  # called before each use of the device
        self._module = _execute(task)
        self._parameter_seed = secret_seed()
        self._init_arguments: dict[str, list[Any]] = {}
        self._models: dict[str, torch.nn.Module] = {}
        self._oracles: dict[str, torch.nn.Module] = {}

    @property
    def parameter_seed(self) -> int:
        return self._parameter_seed

    def init_arguments(self, workload: Workload) -> list[Any]:
        """What `get_init_inputs` returns for this workload, the same each time."""
        if workload.name not in self._init_arguments:
            self._init_arguments[workload.name] = self._draw_init_arguments(workload)
        return self._init_arguments[workload.name]

    def _draw_init_arguments(self, workload: Workload) -> list[Any]:
        function = getattr(self._module, "get_init_inputs", None)
        if function is None:
            return []
        accepted = inspect.signature(function).parameters
        chosen = {key: value for key, value in workload.params.items() if key in accepted}
        with explained(self.task, "get_init_inputs"):
            seed_everything(self._parameter_seed)
            return _argument_list(function(**chosen))

    def model(self, workload: Workload) -> torch.nn.Module:
        """The reference module for a workload, with parameters from the secret seed."""
        if workload.name not in self._models:
            arguments = self.init_arguments(workload)
            with explained(self.task, "Model(...)"), torch.device(self.device):
                seed_everything(self._parameter_seed)
                self._models[workload.name] = self._module.Model(*arguments).to(self.device)
        return self._models[workload.name]

    def draw(self, workload: Workload, seed: int) -> InputSet:
        """Inputs of the author's distribution, from one seed."""
        self._pause()
        with explained(self.task, "get_inputs"), torch.device(self.device):
            seed_everything(seed)
            arguments = _argument_list(self._module.get_inputs(**workload.params))
        tensors: list[torch.Tensor] = []
        try:
            template = flatten(arguments, tensors)
        except UnsupportedValue as error:
            raise BadInput(
                f"{_where(self.task)}: get_inputs returned a value of the wrong type: {error}",
                hint="return tensors, numbers, strings, None, or nestings of them",
            ) from None
        for tensor in tensors:
            if tensor.layout != torch.strided:
                raise BadInput(
                    f"{_where(self.task)}: get_inputs returned a tensor of layout {tensor.layout}",
                    hint="return dense tensors; a sparse one can travel as its parts",
                )
        placed = [tensor.detach().to(self.device, copy=True) for tensor in tensors]
        return InputSet(template, placed)

    def call(self, workload: Workload, inputs: InputSet) -> Result:
        """The reference in its own dtype. May raise: variants can leave a task's domain."""
        self._pause()
        return _call(self.model(workload), inputs)

    def mutates(self, workload: Workload, inputs: InputSet) -> bool:
        """Does the reference change its inputs?"""
        copies = InputSet(inputs.template, [tensor.clone() for tensor in inputs.tensors])
        with torch.no_grad():
            self.model(workload)(*copies.arguments())
        pairs = zip(copies.tensors, inputs.tensors, strict=True)
        return not all(torch.equal(a.nan_to_num(), b.nan_to_num()) for a, b in pairs)

    def oracle(self, workload: Workload, inputs: InputSet) -> Result:
        """The same computation in double precision."""
        self._pause()
        if workload.name not in self._oracles:
            self._oracles[workload.name] = copy.deepcopy(self.model(workload)).double()
        return _call(self._oracles[workload.name], promote(inputs))

    def oracle_coarse(
        self,
        workload: Workload,
        inputs: InputSet,
        coarsen: Callable[[torch.Tensor], torch.Tensor],
    ) -> Result:
        """The oracle on inputs and parameters with fewer bits of mantissa."""
        model = copy.deepcopy(self.model(workload)).double()
        for parameter in model.parameters():
            parameter.data = coarsen(parameter.data)
        promoted = promote(inputs)
        tensors = [coarsen(t) for t in promoted.tensors]
        return _call(model, InputSet(promoted.template, tensors))


def _argument_list(returned: Any) -> list[Any]:
    """Refuses what could be iterated over by mistake: the rows of a tensor, the keys of a dict."""
    if not isinstance(returned, list | tuple):
        raise TypeError(f"expected a list of arguments, got a {type(returned).__name__}")
    return list(returned)


def _call(model: torch.nn.Module, inputs: InputSet) -> Result:
    copies = InputSet(inputs.template, [tensor.clone() for tensor in inputs.tensors])
    tensors: list[torch.Tensor] = []
    with torch.no_grad():
        tree = flatten_result(model(*copies.arguments()), tensors)
    return Result(tree, tensors)


def promote(inputs: InputSet) -> InputSet:
    """Floating point and complex tensors in double precision; the rest as they are."""
    tensors = [_promoted(t) for t in inputs.tensors]
    return InputSet(inputs.template, tensors, inputs.label)


def _promoted(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return tensor.to(torch.complex128)
    return tensor.double() if tensor.is_floating_point() else tensor


def round_mantissa(tensor: torch.Tensor, bits: int) -> torch.Tensor:
    """Round to `bits` explicit bits of mantissa, keeping the exponent's range."""
    return _with_mantissa(tensor, bits, torch.round)


def truncate_mantissa(tensor: torch.Tensor, bits: int) -> torch.Tensor:
    """The same, but leave the other bits out, as a GPU does when it multiplies TF32 numbers. The
    errors have one sign then, and add up."""
    return _with_mantissa(tensor, bits, torch.trunc)


def _with_mantissa(
    tensor: torch.Tensor, bits: int, whole: Callable[[torch.Tensor], torch.Tensor]
) -> torch.Tensor:
    if not tensor.is_floating_point():
        return tensor
    mantissa, exponent = torch.frexp(tensor)
    steps = float(1 << (bits + 1))
    return torch.ldexp(whole(mantissa * steps) / steps, exponent)


def vary(inputs: InputSet, variant: Variant, seed: int) -> InputSet:
    """A variant of the author's inputs; only floating point tensors change."""
    generator = torch.Generator().manual_seed(seed)
    tensors = [_vary_tensor(t, variant, generator) for t in inputs.tensors]
    return InputSet(inputs.template, tensors, variant.value)


def _vary_tensor(
    tensor: torch.Tensor, variant: Variant, generator: torch.Generator
) -> torch.Tensor:
    if variant is Variant.STRIDED:
        return _strided(tensor)
    if not tensor.is_floating_point() or tensor.numel() == 0:
        return tensor
    if variant is Variant.LARGE:
        return tensor * _LARGE
    if variant is Variant.SMALL:
        return tensor * _SMALL
    if variant is Variant.SORTED:
        return tensor.sort(dim=-1).values if tensor.dim() else tensor
    if variant is Variant.TIES:
        scale = tensor.abs().amax().clamp_min(torch.finfo(tensor.dtype).tiny) / _TIE_LEVELS
        return (tensor / scale).round() * scale
    positions = torch.randint(tensor.numel(), (_SPIKES,), generator=generator)
    spikes = tensor.new_ones(tensor.numel()).index_fill_(0, positions.to(tensor.device), _SPIKE)
    return tensor * spikes.view(tensor.shape)


def _strided(tensor: torch.Tensor) -> torch.Tensor:
    """The same values, every second element of a wider last dimension."""
    if tensor.dim() == 0:
        return tensor
    wide = tensor.new_zeros((*tensor.shape[:-1], tensor.shape[-1] * 2))
    wide[..., ::2] = tensor
    return wide[..., ::2]


def seed_everything(seed: int) -> None:
    """Seed every generator that a task may draw from. The judge itself draws from the system's."""
    random.seed(seed)
    numpy.random.seed(seed % (1 << 32))
    # Not torch.manual_seed: without a GPU that queues a call, with its stack, for each seed.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed(seed)


def _where(task: Task) -> str:
    return task.path or task.name


def _execute(task: Task) -> types.ModuleType:
    name = _where(task)
    module = types.ModuleType("task")
    module.__file__ = name
    lines = task.source.splitlines(keepends=True)
    linecache.cache[name] = (len(task.source), None, lines, name)
    with explained(task, "the module"):
        exec(compile(task.source, name, "exec"), module.__dict__)
    return module


@contextlib.contextmanager
def explained(task: Task, what: str) -> Iterator[None]:
    """Turn an exception inside the task's own code into an error that names its line."""
    try:
        yield
    except (BadInput, torch.OutOfMemoryError):  # the latter may be others' doing
        raise
    except Exception as error:
        line, trace = None, error.__traceback__
        while trace is not None:
            if trace.tb_frame.f_code.co_filename == _where(task):
                line = trace.tb_lineno
            trace = trace.tb_next
        place = _where(task) + (f":{line}" if line else "")
        raise BadInput(
            f"{place}: {what} raised {type(error).__name__}: {error}",
            hint="mend the task file, then run `kernel-smith tasks check` on it",
        ) from error
