"""A task's code and the device it runs on, which holds one workload at a time."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from typing import Any

import torch

from kernel_smith.proposers.seed.inside.device_time import DeviceTime
from kernel_smith.proposers.seed.inside.memory import release
from kernel_smith.proposers.seed.inside.pretend import fake_tensors
from kernel_smith.proposers.seed.inside.refusing import refusing
from kernel_smith.proposers.seed.inside.task_module import TaskModule
from kernel_smith.records import Workload

_SEED = 7  # the reference and the seed draw the same parameters
_SPREAD = 0.3


@dataclass(frozen=True)
class Drawn:
    """The reference for a workload, and inputs for it."""

    model: torch.nn.Module
    inputs: list[Any]


class Workbench:
    """Makes models and inputs on the device, and keeps the last ones: they may be big."""

    def __init__(
        self, module: TaskModule, device: str, pretended: bool, time: DeviceTime | None = None
    ) -> None:
        self.module = module
        self.device = device
        self.pretended = pretended
        self.time = time or DeviceTime()
        self._workload: Workload | None = None
        self._drawn: Drawn | None = None

    def draw(self, workload: Workload) -> Drawn:
        """Give a workload's model and inputs, in the room of the workload before."""
        if self._drawn is None or self._workload != workload:
            self.clear()
            with self.time.using(), self._place(), refusing("the task's own code fails"):
                self._seed_generators()
                model = self.module.make_model(workload).requires_grad_(False)
                if not self.pretended:
                    _unsettle(model)
                inputs = self.module.make_inputs(workload)
            self._workload, self._drawn = workload, Drawn(model, inputs)
        return self._drawn

    def make_seed_model(self, model_new: Any, workload: Workload) -> torch.nn.Module:
        """Make a candidate's model for a workload, with the parameters of the reference."""
        reference = self.draw(workload).model
        with self._place():
            self._seed_generators()
            model: torch.nn.Module = model_new(*self.module.init_inputs(workload))
        model.load_state_dict(reference.state_dict())
        return model

    def clear(self) -> None:
        """Free the device of the last workload."""
        self._workload = self._drawn = None
        release()

    def _place(self) -> contextlib.ExitStack:
        """Enter where the author's code runs: on the device, so that nothing big is moved there.

        Fake tensors of a GPU cannot be indexed without one.
        """
        stack = contextlib.ExitStack()
        if self.pretended:
            stack.enter_context(fake_tensors())
        stack.enter_context(torch.device("cpu" if self.pretended else self.device))
        return stack

    def _seed_generators(self) -> None:
        if not self.pretended:  # there is no generator on a device that is not there
            torch.manual_seed(_SEED)


def _unsettle(model: torch.nn.Module) -> None:
    """Move parameters away from one value that a constructor fills them with: means of what a new
    norm returns would be nothing but rounding, which no seed can repeat."""
    for parameter in model.parameters():
        if parameter.is_floating_point() and parameter.numel() and parameter.dtype.itemsize > 1:
            least, greatest = torch.aminmax(parameter)
            if least == greatest:
                parameter.add_(torch.rand_like(parameter), alpha=_SPREAD)
