"""A process that takes part in a measurement: the candidate, or a baseline.

Both are driven through exactly the same requests. The participant owns the arenas it shares with
its process; the judge writes inputs before a batch and reads outputs after it.
"""

from __future__ import annotations

import base64
import math
import os
import pickle
import random
import time
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import torch

from kernel_smith.evaluation.judge.child import Child, ChildFailed
from kernel_smith.evaluation.judge.fetching import Piece, fetch, permitted
from kernel_smith.evaluation.judge.perf_events import Sampler, SamplerUnavailable
from kernel_smith.evaluation.judge.profile import read_maps
from kernel_smith.evaluation.judge.reference import InputSet, Reference, Result
from kernel_smith.evaluation.sandbox.arena import (
    Arena,
    Layout,
    Slot,
    contiguous_stride,
    resolve_dtype,
)
from kernel_smith.records import Limits, Workload

_system_random = random.SystemRandom()

_SAMPLES_PER_SECOND = 8000
_HEADROOM = 1.35
_POISON = 0xFF  # NaN in every floating point type, -1 or the maximum in every integer type


@dataclass(frozen=True)
class Windows:
    """Wall and processor seconds of one batch, as the judge and the operating system saw them."""

    run_wall: float
    run_cpu: float
    service_cpu: float  # looking up arguments and copying results: the same for everyone
    idle_cpu: float  # while nobody asked for anything


@dataclass(frozen=True)
class Batch:
    """What a batch of calls left behind."""

    calls: int
    windows: Windows
    first: dict[str, Any] | None
    odd: list[Any]
    inner_seconds: float


class Watcher(Protocol):
    """Something to switch on while the calls of a batch run."""

    def start(self) -> None: ...
    def stop(self) -> None: ...


class Participant:
    def __init__(self, name: str, child: Child, limits: Limits) -> None:
        self.name = name
        self.child = child
        self.limits = limits
        self._workload: Workload | None = None
        self._inputs: Arena | None = None
        self._outputs: Arena | None = None
        self._input_slots: list[list[Slot]] = []
        self._output_slots: list[list[Slot]] = []
        self._parameter_slots: dict[str, Slot] = {}
        self._parameters: dict[str, torch.Tensor] = {}
        self._bound: list[InputSet] = []
        self._of_unknown_speed = True
        self._strides: list[tuple[int, ...]] = []
        self._places: list[list[Place]] = []
        self.fetches = self._entered = False
        self._last_cpu = 0.0
        self._idle_cpu = 0.0
        self._bind_cpu = 0.0
        self.redrawn = 0
        self.ended = False
        self.sampler: Sampler | None = None
        self.not_sampled: str | None = None
        self.calling_seconds = 0.0

    def observe(self, cores: Collection[int]) -> None:
        """Attach a sampler that stays switched off until somebody wants to know.

        Before the first thread starts, or every thread would need one event per core. And to
        baselines as well, though nobody samples them: the system takes a few microseconds longer to
        switch to an observed process, which would be charged to the candidate alone.
        """
        self.child.ready()
        try:
            self.sampler = Sampler(self.child.pid, cores, _SAMPLES_PER_SECOND)
        except SamplerUnavailable as error:
            self.not_sampled = str(error)

    def load(
        self,
        source: str,
        name: str,
        entry: str,
        threads: int,
        *,
        compiled: bool = False,
        interpreted: bool = False,
        disarmed: bool = False,
    ) -> None:
        self.child.ask(
            "load",
            self.limits.load_seconds,
            source=source,
            name=name,
            entry=entry,
            threads=threads,
            compiled=compiled,
            interpreted=interpreted,
            disarmed=disarmed,
        )

    def enter(
        self,
        reference: Reference,
        workload: Workload,
        like: Sequence[InputSet],
        answer: Result,
        capacity: int,
    ) -> None:
        """Lay out arenas for `capacity` calls and construct the module for this workload.

        `like` holds an example of every layout of inputs that can occur, and each slot is large
        enough for all of them; `answer` is what a call returns.
        """
        self._workload = workload
        layout, out_layout = Layout(), Layout()
        parameters = dict(reference.model(workload).named_parameters())
        self._parameters = {name: p.detach() for name, p in parameters.items()}
        self._parameter_slots = {
            name: layout.place(p.shape, contiguous_stride(p.shape), p.dtype)
            for name, p in self._parameters.items()
        }
        self._bases = [_reserve(layout, [s.tensors for s in like]) for _ in range(capacity)]
        by_output = [
            [
                out_layout.place(t.shape, contiguous_stride(t.shape), t.dtype)
                for _ in range(capacity)
            ]
            for t in answer.tensors
        ]
        self._output_slots = [[slots[call] for slots in by_output] for call in range(capacity)]
        self._strides = [t.stride() for t in answer.tensors]
        inputs = self._make_room(layout.size, out_layout.size)
        for name, slot in self._parameter_slots.items():
            inputs.view(slot).copy_(self._parameters[name])
        constructed = self.child.ask(
            "construct",
            self.limits.load_seconds,
            key=workload.name,
            seed=reference.parameter_seed,
            arguments=base64.b64encode(pickle.dumps(reference.init_arguments(workload))).decode(),
            parameters={name: slot.to_json() for name, slot in self._parameter_slots.items()},
        )
        self.redrawn = _count(constructed.get("redrawn", 0))

    def _make_room(self, input_bytes: int, output_bytes: int) -> Arena:
        """Arenas of at least these sizes; those of an earlier workload, if they are large enough.

        Making one and having it mapped takes milliseconds, so they are made larger than needed.
        """
        if self._inputs is not None and self._outputs is not None:
            if self._inputs.size >= input_bytes and self._outputs.size >= output_bytes:
                return self._inputs
            self.leave()
        self.child.ready()
        if not self._entered:
            self.fetches, self._entered = permitted(self.child.pid), True
        make_outputs = Arena.private if self.fetches else Arena.create
        self._inputs = Arena.create(int(_HEADROOM * input_bytes))
        self._outputs = make_outputs(int(_HEADROOM * output_bytes))
        shared = (self._inputs,) if self.fetches else (self._inputs, self._outputs)
        self.child.ask(
            "map",
            self.limits.load_seconds,
            fds=tuple(arena.fd for arena in shared),
            sizes=[arena.size for arena in shared],
        )
        return self._inputs

    def bind(self, sets: Sequence[InputSet], check_signature: bool = False) -> None:
        """Let the process look up its arguments, and only then write the inputs in place."""
        assert self._inputs is not None and self._outputs is not None and self._workload
        self._bound = list(sets)
        self._of_unknown_speed = check_signature
        for row in self._output_slots[: len(sets)]:
            for slot in row:
                self._outputs.raw(slot.offset, slot.offset + slot.nbytes).fill_(_POISON)
        calls = []
        self._input_slots = []
        # In random places, or a call could foresee where the inputs of the next ones lie.
        bases = _system_random.sample(self._bases, len(sets))
        for base, inputs in zip(bases, sets, strict=True):
            slots = _slots_at(base, inputs.tensors)
            self._input_slots.append(slots)
            calls.append([inputs.template, [slot.to_json() for slot in slots]])
        before_cpu = self._note_idle()
        self.child.ask(
            "bind",
            self.limits.load_seconds,
            key=self._workload.name,
            calls=calls,
            check=check_signature,
        )
        self._last_cpu = self.child.cpu_seconds()
        self._bind_cpu = self._last_cpu - before_cpu
        for slots, inputs in zip(self._input_slots, sets, strict=True):
            for slot, tensor in zip(slots, inputs.tensors, strict=True):
                self._inputs.view(slot).copy_(tensor)

    def _note_idle(self) -> float:
        """Add up what the process used since the last answer: nothing, if it is honest."""
        now = self.child.cpu_seconds()
        if self._last_cpu:
            self._idle_cpu += now - self._last_cpu
        return now

    @property
    def capacity(self) -> int:
        return len(self._output_slots)

    def run(self, calls: int | None = None, watch: Watcher | None = None) -> Batch:
        """Time one batch of calls from outside, then fetch the outputs."""
        count = len(self._bound) if calls is None else calls
        nonce = os.urandom(8).hex()
        # Once its speed is known, batches are planned to be far shorter than one call may take.
        timeout = self.limits.call_seconds * (max(count, 1) if self._of_unknown_speed else 1)
        if watch is not None:
            watch.start()
        before_cpu = self._note_idle()
        before = time.perf_counter()
        self.child.post("go", calls=count, nonce=nonce, places=self.fetches)
        answer = self.child.answer("go", timeout)
        finished = time.perf_counter()
        with self.child.stopped():
            finished_cpu = self.child.cpu_seconds()
            if watch is not None:
                watch.stop()
            if answer.get("done") != nonce:
                self.child.kill()
                message = "the answer to another request"
                raise ChildFailed("protocol", message, self.child.read_log())
            if self.fetches:
                self._places = _places(answer.get("at"), count, len(self._strides))
                self.fetch()
        asked = [] if self.fetches else self._output_slots[:count]
        slots = [[slot.to_json() for slot in row] for row in asked]
        gathered = self.child.ask("collect", self.limits.load_seconds, slots=slots)
        collected_cpu = self.child.cpu_seconds()
        self.calling_seconds += finished - before
        windows = Windows(
            run_wall=finished - before,
            run_cpu=finished_cpu - before_cpu,
            service_cpu=collected_cpu - finished_cpu + self._bind_cpu,
            idle_cpu=self._idle_cpu,
        )
        self._last_cpu, self._idle_cpu = collected_cpu, 0.0
        return _batch(gathered, count, windows)

    def fetch(self) -> None:
        """Read the results of the last batch as they are now."""
        assert self._outputs is not None
        pieces = []
        for places, row in zip(self._places, self._output_slots, strict=False):
            for (address, stride), slot, usual in zip(places, row, self._strides, strict=False):
                if stride is None or stride == list(slot.stride):
                    pieces.append(Piece(address, self._outputs.address(slot), slot.nbytes))
                elif stride == list(usual):
                    self._fetch_rearranged(address, Slot(0, slot.shape, usual, slot.dtype), slot)
        fetch(self.child.pid, [piece for piece in pieces if piece.size])

    def _fetch_rearranged(self, address: int, there: Slot, here: Slot) -> None:
        """A result that lies in memory in the reference's own order, which is not the usual one."""
        assert self._outputs is not None
        raw = torch.full((there.nbytes,), _POISON, dtype=torch.uint8)
        if there.nbytes:
            fetch(self.child.pid, [Piece(address, raw.data_ptr(), there.nbytes)])
            strided = raw.view(resolve_dtype(there.dtype)).as_strided(there.shape, there.stride)
            self._outputs.view(here).copy_(strided)

    def outputs(self, call: int) -> list[torch.Tensor]:
        """What the process left in the output arena for one call."""
        assert self._outputs is not None
        return [self._outputs.view(slot) for slot in self._output_slots[call]]

    def output_rows(self, calls: int) -> list[torch.Tensor]:
        """The same for many calls at once: per output a matrix with one row per call."""
        assert self._outputs is not None
        first = self._output_slots[0]
        steps = (
            [b.offset - a.offset for a, b in zip(first, self._output_slots[1], strict=True)]
            if calls > 1
            else [0] * len(first)
        )
        return [
            self._outputs.rows(slot, calls, step) for slot, step in zip(first, steps, strict=True)
        ]

    def inputs_unchanged(self, call: int) -> bool:
        assert self._inputs is not None
        pairs = zip(self._input_slots[call], self._bound[call].tensors, strict=True)
        return all(_same_bits(self._inputs.view(slot), tensor) for slot, tensor in pairs)

    def parameters_unchanged(self) -> bool:
        assert self._inputs is not None
        return all(
            _same_bits(self._inputs.view(slot), self._parameters[name])
            for name, slot in self._parameter_slots.items()
        )

    def maps_own_files(self) -> bool:
        """Has the process loaded code from its scratch folder?"""
        maps = read_maps(self.child.pid).splitlines()
        return any(str(self.child.scratch) in row and "x" in row.split()[1] for row in maps)

    def leave(self) -> None:
        """Give the shared memory back."""
        for arena in (self._inputs, self._outputs):
            if arena is not None:
                arena.close()

    def close(self) -> None:
        """The process is no longer needed."""
        self.ended = True
        self.leave()
        if self.sampler is not None:
            self.sampler.close()


Place = tuple[int, list[int] | None]
"""An address in the process, and strides unless they are the usual ones."""


def _places(reported: Any, calls: int, outputs: int) -> list[list[Place]]:
    """Where the process says that its results are; too many or too few places are nowhere."""
    try:
        rows = [[(call, None)] if isinstance(call, int) else list(call) for call in reported]
        places = [[(_address(address), stride) for address, stride in row] for row in rows]
    except (TypeError, ValueError) as error:
        raise ChildFailed("protocol", f"malformed places of results: {error}") from None
    if len(places) != calls:
        raise ChildFailed("protocol", "the number of results differs from the number of calls")
    return [row if len(row) == outputs else [] for row in places]


def _address(number: Any) -> int:
    if not isinstance(number, int) or not 0 <= number < 1 << 63:
        raise ValueError("not an address")
    return number


def _count(number: Any) -> int:
    """A number that the process sent."""
    if not isinstance(number, int):
        raise ChildFailed("protocol", f"expected a number, got {type(number).__name__}")
    return number


def _batch(gathered: dict[str, Any], count: int, windows: Windows) -> Batch:
    """Read the process's own account of a batch; a malformed one is a protocol violation."""
    try:
        first, odd = gathered["first"], list(gathered["odd"])
        inner = float(gathered["inner"])
        if not math.isfinite(inner):
            raise ValueError(f"{inner} seconds per call")
        complete = int(gathered["count"]) == count
        if odd:
            _, _ = odd
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ChildFailed("protocol", f"malformed report of a batch: {error}") from None
    if not complete:
        raise ChildFailed("protocol", "the number of results differs from the number of calls")
    return Batch(count, windows, first, odd, inner)


def _reserve(layout: Layout, examples: Sequence[list[torch.Tensor]]) -> list[int]:
    """Room for one call: per argument, as much as its largest example needs."""
    bases = []
    for variants in zip(*examples, strict=True):
        largest = max(variants, key=lambda t: Slot(0, t.shape, t.stride(), _name(t)).nbytes)
        bases.append(layout.like(largest).offset)
    return bases


def _slots_at(bases: Sequence[int], tensors: Sequence[torch.Tensor]) -> list[Slot]:
    return [
        Slot(base, tuple(t.shape), tuple(t.stride()), _name(t))
        for base, t in zip(bases, tensors, strict=True)
    ]


def _name(tensor: torch.Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _same_bits(left: torch.Tensor, right: torch.Tensor) -> bool:
    if torch.equal(left, right):
        return True
    # NaN differs from itself; only then are the bytes worth comparing.
    a, b = left.contiguous().view(torch.uint8), right.contiguous().view(torch.uint8)
    return torch.equal(a, b)
