"""Where all that belongs to the calls of one workload lies, in memory shared with a process.

One arena holds the parameters, the inputs of so many calls and the ledger; the other one what comes
back. The judge writes inputs before a batch and reads outputs after it.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

import torch

from kernel_smith.evaluation.judge.inputs.reference import InputSet, Reference, Result
from kernel_smith.evaluation.judge.platform.buffers import POISON, SharedBuffers
from kernel_smith.evaluation.judge.platform.slots import largest_of_each, place_all, slots_at
from kernel_smith.evaluation.judge.values.pieces import same_bits
from kernel_smith.evaluation.sandbox.arena import Layout, Slot, contiguous_stride
from kernel_smith.evaluation.sandbox.ledger import Ledger
from kernel_smith.records import Workload

_system_random = random.SystemRandom()


class CallMemory:
    """Memory of no calls at all, until it is laid out for those of a workload."""

    def __init__(self, room: SharedBuffers) -> None:
        self.room = room
        self.inputs: list[list[Slot]] = []  # of the calls that are bound
        self.outputs: list[list[Slot]] = []  # of as many calls as there is room for
        self.strides: list[tuple[int, ...]] = []  # of the reference's results
        self.parameters: dict[str, Slot] = {}
        self.statistics: dict[str, Slot] = {}  # buffers that a call may change
        self._parameter_values: dict[str, torch.Tensor] = {}
        self._statistic_values: dict[str, torch.Tensor] = {}
        self._bases: list[list[int]] = []  # where inputs may lie
        self._ledger: Ledger | None = None
        self._ledger_slot: Slot | None = None

    def lay_out(
        self,
        reference: Reference,
        workload: Workload,
        like: Sequence[InputSet],
        answer: Result,
        capacity: int,
        *,
        with_ledger: bool,
    ) -> tuple[int, int]:
        """Make a plan for `capacity` calls; return how many bytes each of the arenas must have.

        `like` holds an example of every layout of inputs that can occur, and each slot is large
        enough for all of them; `answer` is what a call returns.
        """
        layout, out_layout = Layout(), Layout()
        parameters = dict(reference.model(workload).named_parameters())
        self._parameter_values = {name: p.detach() for name, p in parameters.items()}
        self._statistic_values = reference.statistics(workload)
        self.parameters = place_all(layout, self._parameter_values)
        self.statistics = place_all(layout, self._statistic_values)
        if with_ledger:
            cells = (capacity, len(answer.tensors))
            self._ledger_slot = layout.place(cells, contiguous_stride(cells), torch.int64)
        largest = largest_of_each([s.tensors for s in like])
        self._bases = [[layout.like(t).offset for t in largest] for _ in range(capacity)]
        by_output = [
            [
                out_layout.place(t.shape, contiguous_stride(t.shape), t.dtype)
                for _ in range(capacity)
            ]
            for t in answer.tensors
        ]
        self.outputs = [[slots[call] for slots in by_output] for call in range(capacity)]
        self.strides = [t.stride() for t in answer.tensors]
        return layout.size, out_layout.size

    def fill(self) -> None:
        """Put parameters and statistics where they were planned to lie."""
        if self._ledger_slot is not None:
            self._ledger = Ledger(self.room.inputs.view(self._ledger_slot))
        values = self._parameter_values | self._statistic_values
        for name, slot in (self.parameters | self.statistics).items():
            self.room.inputs.view(slot).copy_(values[name])
        self.room.settle()

    def choose_places(self, sets: Sequence[InputSet]) -> list[list[Any]]:
        """Decide where the inputs of a batch will lie, and describe it for the process.

        In random places, or a call could foresee where the inputs of the next ones lie.
        """
        bases = _system_random.sample(self._bases, len(sets))
        self.inputs = [
            slots_at(base, inputs.tensors) for base, inputs in zip(bases, sets, strict=True)
        ]
        return [
            [inputs.template, [slot.to_json() for slot in slots]]
            for slots, inputs in zip(self.inputs, sets, strict=True)
        ]

    def ledger_place(self) -> list[Any] | None:
        return None if self._ledger_slot is None else self._ledger_slot.to_json()

    def write(self, call: int, inputs: InputSet) -> None:
        for slot, tensor in zip(self.inputs[call], inputs.tensors, strict=True):
            self.room.inputs.view(slot).copy_(tensor)

    def poison_outputs(self, calls: int) -> None:
        for row in self.outputs[:calls]:
            for slot in row:
                self.room.outputs.raw(slot.offset, slot.offset + slot.nbytes).fill_(POISON)

    def clear_ledger(self) -> None:
        if self._ledger is not None:
            self._ledger.clear()

    def entered(self, calls: int) -> list[list[int]]:
        """Where the process says that the results are of calls that have returned."""
        return [] if self._ledger is None else self._ledger.entered(calls)

    def results(self, call: int) -> list[torch.Tensor]:
        """What the process left in the output arena for one call."""
        return self.room.results(call, self.outputs[call])

    def result_rows(self, calls: int) -> list[torch.Tensor]:
        """The same for many calls at once: per output a matrix with one row per call."""
        first = self.outputs[0]
        steps = (
            [b.offset - a.offset for a, b in zip(first, self.outputs[1], strict=True)]
            if calls > 1
            else [0] * len(first)
        )
        return [
            self.room.outputs.rows(slot, calls, step)
            for slot, step in zip(first, steps, strict=True)
        ]

    def holds(self, call: int, inputs: InputSet) -> bool:
        """Are the inputs of a call still what was written there?"""
        pairs = zip(self.inputs[call], inputs.tensors, strict=True)
        return all(same_bits(self.room.inputs.view(slot), tensor) for slot, tensor in pairs)

    def parameters_unchanged(self) -> bool:
        return all(
            same_bits(self.room.inputs.view(slot), self._parameter_values[name])
            for name, slot in self.parameters.items()
        )

    def drop_views(self) -> None:
        """Forget what refers to the shared memory, before it is given back."""
        self.inputs = []
        self._ledger = None
