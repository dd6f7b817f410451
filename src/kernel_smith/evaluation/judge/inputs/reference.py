"""The task, executed: its inputs from secret seeds, its reference, and the fp64 oracle.

Only the judge imports this. A task file is the user's own and is trusted, as a test file would be.
"""

from __future__ import annotations

import contextlib
import inspect
import random
import secrets
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy
import torch

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.inputs.parameters import unsettle
from kernel_smith.evaluation.judge.inputs.plain import demand_plain
from kernel_smith.evaluation.judge.inputs.settings import settings_kept
from kernel_smith.evaluation.judge.inputs.task_code import execute, explained, where
from kernel_smith.evaluation.judge.values.pieces import pieces, same_bits
from kernel_smith.evaluation.sandbox.memory import trim_freed_memory
from kernel_smith.evaluation.sandbox.tree import (
    UnsupportedValue,
    flatten,
    flatten_result,
    unflatten,
)
from kernel_smith.records import Precision, Task, Workload

AUTHOR = "author"  # the kind of inputs that the task's author draws

_TAKER = {"get_inputs": "Model.forward", "get_init_inputs": "Model.__init__"}
_LARGE_ORACLE = 256 << 20  # bytes of parameters: built again when it is needed


@dataclass(frozen=True)
class InputSet:
    """The arguments of one call: their nesting, and the tensors in it."""

    template: Any
    tensors: list[torch.Tensor]
    label: str = AUTHOR

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

    def with_numbers_of(self, other: InputSet) -> InputSet:
        """These tensors, beside the numbers and strings of another set."""
        return InputSet(other.template, self.tensors, self.label)


@dataclass(frozen=True)
class Result:
    """What one call returned: its nesting, and the tensors in it."""

    tree: Any
    tensors: list[torch.Tensor]


class Variation(NamedTuple):
    """Of outputs that hardly vary, in absolute numbers per output."""

    spread: list[float]  # how much they differ between elements, or between inputs if that is less
    lost: list[float]  # how far off the precision that the task allows makes them


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
        with settings_kept(task, "the module"):
            self._module = execute(task)
        self._parameter_seed = secret_seed()
        self._init_arguments: dict[str, list[Any]] = {}
        self._models: dict[str, torch.nn.Module] = {}
        self._unsettled: dict[str, list[str]] = {}  # parameters that are not the constructor's
        self._oracles: dict[str, torch.nn.Module] = {}
        self._pure: dict[str, bool] = {}  # does it leave its inputs alone? by workload
        self._without_oracle: set[str] = set()
        self._variations: dict[str, Variation] = {}
        self._free_integers: dict[str, list[bool]] = {}
        self._kept: tuple[str, int, InputSet] | None = None

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
            returned = function(**chosen)
        return _argument_list(self.task, "get_init_inputs", returned)

    def model(self, workload: Workload) -> torch.nn.Module:
        """The reference module for a workload, with parameters from the secret seed."""
        if workload.name not in self._models:
            model = self._build(workload)
            if self.device != "meta":  # nothing is known there of what they are
                self._unsettled[workload.name] = unsettle(model, self._parameter_seed)
            self._models[workload.name] = model
        return self._models[workload.name]

    def settle(self, workload: Workload) -> bool:
        """Go back to the parameters of the constructor; were there others?"""
        if not self._unsettled.pop(workload.name, []):
            return False
        self._models[workload.name] = self._build(workload)
        self._oracles.pop(workload.name, None)
        return True

    def statistics(self, workload: Workload) -> dict[str, torch.Tensor]:
        """Buffers among those that have other values than the constructor gives them."""
        buffers = dict(self.model(workload).named_buffers())
        return {name: buffers[name] for name in self.unsettled(workload) if name in buffers}

    def unsettled(self, workload: Workload) -> list[str]:
        """Parameters and buffers that have other values than the constructor gives them."""
        return self._unsettled.get(workload.name, [])

    def _build(self, workload: Workload) -> torch.nn.Module:
        arguments = self.init_arguments(workload)
        with (
            settings_kept(self.task, "Model(...)"),
            explained(self.task, "Model(...)"),
            torch.device(self.device),
        ):
            seed_everything(self._parameter_seed)
            model: torch.nn.Module = self._module.Model(*arguments)
            demand_plain(self.task, "Model(...) holds", (*model.parameters(), *model.buffers()))
            return model.to(self.device)

    def _another(self, workload: Workload) -> torch.nn.Module:
        """Build a module with the same parameters. A copy of the first could share functions with
        it that go on using the first one's."""
        model = self._build(workload)
        model.load_state_dict(self.model(workload).state_dict())
        return model

    def draw(self, workload: Workload, seed: int) -> InputSet:
        """Inputs of the author's distribution, from one seed."""
        self._pause()
        with (
            settings_kept(self.task, "get_inputs"),
            explained(self.task, "get_inputs"),
            torch.device(self.device),
        ):
            seed_everything(seed)
            returned = self._module.get_inputs(**workload.params)
        arguments = _argument_list(self.task, "get_inputs", returned)
        tensors: list[torch.Tensor] = []
        try:
            template = flatten(arguments, tensors)
        except UnsupportedValue as error:
            raise BadInput(
                f"{where(self.task)}: get_inputs returned a value of the wrong type: {error}",
                hint="return tensors, numbers, strings, None, or nestings of them",
            ) from None
        del arguments, returned
        demand_plain(self.task, "get_inputs returned", tensors)
        # An author may keep a tensor, and hand out the same again.
        kept = [held != _HELD_BY_US_ALONE for held in _holders(tensors)]
        pairs = zip(tensors, kept, strict=True)
        return InputSet(template, [t.detach().to(self.device, copy=copy) for t, copy in pairs])

    def draw_to_keep(self, workload: Workload, seed: int) -> InputSet:
        """The same, kept until another set is: it is there to be read."""
        if self._kept is None or self._kept[:2] != (workload.name, seed):
            self._kept = None
            self._kept = workload.name, seed, self.draw(workload, seed)
        return self._kept[2]

    def forget_draw(self) -> None:
        self._kept = None

    def call(self, workload: Workload, inputs: InputSet) -> Result:
        """The reference in its own dtype. May raise: variants can leave a task's domain."""
        self._pause()
        given = self.protected(workload, inputs)
        result = _call(self.model(workload), given)
        if workload.name not in self._pure and self.device != "meta":
            who = f"workload {workload.name}: Model.forward returned"
            demand_plain(self.task, who, result.tensors)
            pairs = zip(given.tensors, inputs.tensors, strict=True)
            self._pure[workload.name] = all(same_bits(after, before) for after, before in pairs)
        return result

    def library(self, workload: Workload, inputs: InputSet) -> Result | None:
        """The reference as PyTorch computes it where it may be coarse, which is how baselines run;
        None if that is no different."""
        if self.device != "cuda" or self.task.precision is Precision.STRICT:
            return None
        with _library_products_in_tf32():
            return self.call(workload, inputs)

    def protected(self, workload: Workload, inputs: InputSet) -> InputSet:
        """Copy what the reference might change."""
        return inputs if self._pure.get(workload.name) else _copied(inputs)

    def mutates(self, workload: Workload, inputs: InputSet) -> bool:
        """Does the reference change its inputs?"""
        if workload.name not in self._pure:
            self.call(workload, inputs)
        return not self._pure[workload.name]

    def affords_oracle(self, workload: Workload) -> bool:
        """Is there memory for this workload in double precision?"""
        return workload.name not in self._without_oracle

    def do_without_oracle(self, workload: Workload) -> None:
        """Take the reference's own answer for the right one from now on."""
        self._without_oracle.add(workload.name)

    def variation(self, workload: Workload) -> Variation | None:
        """How outputs vary, where that is what they are compared by."""
        return self._variations.get(workload.name)

    def compare_by_variation(self, workload: Workload, variation: Variation) -> None:
        """Hold errors against how outputs vary, and no longer against their size."""
        self._variations[workload.name] = variation

    def compare_by_size(self, workload: Workload) -> None:
        """Hold errors against the size of outputs, as usual."""
        self._variations.pop(workload.name, None)

    def free_integers(self, workload: Workload) -> list[bool]:
        """Per input tensor, whether it holds integers that mean nothing together."""
        return self._free_integers.get(workload.name, [])

    def note_free_integers(self, workload: Workload, free: list[bool]) -> None:
        """Let these be varied and mixed."""
        self._free_integers[workload.name] = free

    def oracle(self, workload: Workload, inputs: InputSet) -> Result:
        """The same computation in double precision."""
        self._pause()
        if workload.name not in self._oracles:
            self._oracles[workload.name] = self._another(workload).double()
        return _call_in_double(self._oracles[workload.name], promote(inputs))

    def give_memory_back(self) -> None:
        """Return what was freed to the system: others may need it more than the next call."""
        for name, model in list(self._oracles.items()):
            if sum(parameter.nbytes for parameter in model.parameters()) > _LARGE_ORACLE:
                del self._oracles[name]
        if self.device == "cuda":
            torch._C._cuda_clearCublasWorkspaces()
            torch.cuda.empty_cache()
        else:
            trim_freed_memory()

    def make_room(self) -> None:
        """Between two uses in one evaluation. On a GPU, processes need what was freed; on a CPU, to
        take fresh memory takes longer than a call."""
        if self.device == "cuda":
            self.give_memory_back()

    def parameter_bytes(self, workload: Workload) -> int:
        """Return the size of its parameters and buffers."""
        model = self.model(workload)
        return sum(t.nbytes for t in (*model.parameters(), *model.buffers()))

    def coarse(
        self,
        workload: Workload,
        inputs: InputSet,
        coarsen: Callable[[torch.Tensor], torch.Tensor],
        *,
        wide: bool,
    ) -> Result:
        """The oracle (`wide`), or the reference, on inputs and parameters with fewer bits of
        mantissa."""
        model = self._another(workload)
        model = model.double() if wide else model
        changed = promote(inputs) if wide else _copied(inputs)
        for tensor in (*(p.data for p in model.parameters()), *changed.tensors):
            for _, (part,) in pieces(tensor):
                part.copy_(coarsen(part))
        return _call_in_double(model, changed) if wide else _call(model, changed)


def _holders(tensors: list[torch.Tensor]) -> list[tuple[int, int, bool]]:
    """How many refer to each tensor, and to the memory behind it; and is that torch's own?"""
    count = torch._C._storage_Use_Count
    storages = [tensor.untyped_storage() for tensor in tensors]
    return [
        (sys.getrefcount(tensor), count(storage._cdata), storage.resizable())
        for tensor, storage in zip(tensors, storages, strict=True)
    ]


_HELD_BY_US_ALONE = _holders([torch.empty(1)])[0]


def _argument_list(task: Task, function: str, returned: Any) -> list[Any]:
    """Refuses what could be iterated over by mistake: the rows of a tensor, the keys of a dict."""
    if not isinstance(returned, list | tuple):
        if isinstance(returned, dict):
            hint = f"return its values as a list, in the order of {_TAKER[function]}'s parameters"
        else:
            hint = "return a list, also of one argument: return [x]"
        kind = "None" if returned is None else f"a {type(returned).__name__}"
        raise BadInput(
            f"{where(task)}: {function} returned {kind}, expected a list of arguments", hint=hint
        )
    return list(returned)


def _copied(inputs: InputSet) -> InputSet:
    return InputSet(inputs.template, [tensor.clone() for tensor in inputs.tensors], inputs.label)


def _call(model: torch.nn.Module, inputs: InputSet) -> Result:
    tensors: list[torch.Tensor] = []
    with torch.no_grad():
        tree = flatten_result(model(*inputs.arguments()), tensors)
    return Result(tree, tensors)


def _call_in_double(model: torch.nn.Module, inputs: InputSet) -> Result:
    """Tensors that it makes itself, such as a first state, are of that kind as well."""
    usual = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        return _call(model, inputs)
    finally:
        torch.set_default_dtype(usual)


@contextlib.contextmanager
def _library_products_in_tf32() -> Iterator[None]:
    products, convolutions = torch.backends.cuda.matmul, torch.backends.cudnn
    before = products.allow_tf32, convolutions.allow_tf32
    products.allow_tf32 = convolutions.allow_tf32 = True
    try:
        yield
    finally:
        products.allow_tf32, convolutions.allow_tf32 = before


def promote(inputs: InputSet) -> InputSet:
    """Copies in double precision of floating point and complex tensors; copies of the rest."""
    tensors = [_promoted(t) for t in inputs.tensors]
    return InputSet(inputs.template, tensors, inputs.label)


def _promoted(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.is_complex():
        return tensor.to(torch.complex128, copy=True)
    return tensor.to(torch.float64 if tensor.is_floating_point() else tensor.dtype, copy=True)


def seed_everything(seed: int) -> None:
    """Seed every generator that a task may draw from. The judge itself draws from the system's."""
    random.seed(seed)
    numpy.random.seed(seed % (1 << 32))
    # Not torch.manual_seed: without a GPU that queues a call, with its stack, for each seed.
    torch.default_generator.manual_seed(seed)
    if torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        torch.cuda.manual_seed(seed)
