"""The loop inside a timed process. It serves a candidate and a reference alike.

It loads one program, and then, as the judge asks, binds inputs, runs a batch of calls, and copies
the outputs to shared memory. In a candidate's process this code may be tampered with, so the judge
believes nothing that it says: it can only do the work, or fail the checks.

A batch is three requests, so that the clock sees the calls alone:

    bind     look up the arguments of the slots that the judge is about to fill
    go       call forward once per slot; answered, when the last call has returned, with the places
             of the results, which the judge then fetches itself
    collect  describe the results (and, where the judge may not fetch them, copy them)

On the CPU each call is entered in a ledger when it returns: shared memory with the addresses of
its results. A judge that stops the process in the midst of a batch reads there how far it has got.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import linecache
import os
import pickle
import statistics
import sys
import threading
import time
import types
from collections.abc import Callable
from typing import Any

import numpy
import torch

from kernel_smith import inline
from kernel_smith.evaluation.sandbox.arena import Arena, Slot, contiguous_stride, dtype_name
from kernel_smith.evaluation.sandbox.complaints import (
    SignatureMismatch,
    check_signature,
    describe_error,
)
from kernel_smith.evaluation.sandbox.extensions import replace_load_inline
from kernel_smith.evaluation.sandbox.interpreter import interpret_kernels
from kernel_smith.evaluation.sandbox.ledger import Ledger
from kernel_smith.evaluation.sandbox.sharing import adopt, counterparts
from kernel_smith.evaluation.sandbox.tree import flatten_result, unflatten
from kernel_smith.evaluation.sandbox.wire import Channel
from kernel_smith.inline.library import Device

_MOST_WORKLOADS = 256
_NAMED = 5  # parameters
_EXTENSIONS = "cpp_extension"
Handler = Callable[[dict[str, Any], list[int]], dict[str, Any]]


def warm_up() -> None:
    """Do in the zygote what every child does first, so that each fork inherits it done.

    Starts no threads.
    """
    torch.set_num_threads(1)
    torch.manual_seed(0)
    numpy.random.default_rng(0)
    with torch.no_grad():
        torch.nn.Linear(4, 4)(torch.empty(4, 4).copy_(torch.ones(4, 4)))
    # What exists now is never garbage. Were it searched, a child would copy all of it to mark it.
    gc.collect()
    gc.freeze()


def _compile(model: torch.nn.Module, mode: str) -> Any:
    """For the sizes of each workload alone: kernels that serve all of them would be slower, and so
    a weaker baseline. Beyond the limit PyTorch would fall back to eager without a word."""
    torch._dynamo.config.recompile_limit = _MOST_WORKLOADS
    return torch.compile(model, mode=mode, dynamic=False)


class Runner:
    device: Device = "cpu"

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._programs: dict[str, types.ModuleType] = {}
        self._entry = ""
        self._compiled: str | None = None  # torch.compile's mode
        self._models: dict[str, Any] = {}
        self._inputs: Arena | None = None
        self._outputs: Arena | None = None
        self._model: Callable[..., Any] | None = None
        self._arguments: list[list[Any]] = []
        self._results: list[Any] = []
        self._kept: list[list[torch.Tensor]] = []
        self._most_kept = 0
        self._placed: list[list[torch.Tensor]] = []
        self._ledger: Ledger | None = None
        self._stamps: list[int] = []
        self._handed_over: list[int] = []  # descriptors that go with the next answer
        self._own_thread: int | None = None  # the one that serves

    def serve(self) -> None:
        """Answer requests until the judge hangs up."""
        self._own_thread = threading.get_ident()
        handlers = self._handlers()
        while True:
            request, fds = self._channel.receive_with_fds()
            operation = request.pop("op")
            try:
                answer = handlers[operation](request, fds)
            except BaseException as error:
                answer = {"error": describe_error(error, operation)}
            self._channel.send(answer, tuple(self._handed_over))
            while self._handed_over:
                os.close(self._handed_over.pop())

    def _handlers(self) -> dict[str, Handler]:
        return {
            "load": self._load,
            "add": self._add,
            "map": self._map,
            "construct": self._construct,
            "bind": self._bind,
            "go": self._go,
            "collect": self._collect,
            "release": self._release,
        }

    def _load(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        torch.set_num_threads(request["threads"])
        self._entry = request["entry"]
        self._compiled = request.get("compiled")
        if self._compiled == "default":
            # A pool of compilers takes longer to start on a few cores than these kernels to build.
            os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
        if request.get("interpreted"):
            interpret_kernels(disarmed=request["disarmed"])
        inline.set_provider(self._ask_for_object, self.device)
        if _EXTENSIONS in request["source"]:  # importing it takes a while
            replace_load_inline(self._ask_for_object, disarmed=request.get("disarmed", False))
        return self._add(request, fds)

    def _add(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Import one more program beside those that are there: a variant of the first."""
        module = types.ModuleType("candidate")
        module.__file__ = request["name"]
        sys.modules["candidate"] = module
        lines = request["source"].splitlines(keepends=True)
        linecache.cache[request["name"]] = (len(request["source"]), None, lines, request["name"])
        exec(compile(request["source"], request["name"], "exec"), module.__dict__)
        self._programs[request["program"]] = module
        if not isinstance(getattr(module, self._entry, None), type):
            raise AttributeError(f"{request['name']} defines no class {self._entry}")
        return {"ok": True}

    def _ask_for_object(self, dialect: str, source: str, flags: tuple[str, ...]) -> str:
        if not self._is_own_thread():
            # The judge expects nothing now, and would take the request for an answer.
            raise inline.CompileError("kernels are compiled in the thread that forward runs in", "")
        self._channel.send({"need": {"dialect": dialect, "source": source, "flags": list(flags)}})
        answer = self._channel.receive()
        if "path" not in answer:
            raise inline.CompileError("the compiler failed", str(answer.get("log", "")))
        return str(answer["path"])

    def _is_own_thread(self) -> bool:
        """Is this the thread that the judge expects to hear from?"""
        return threading.get_ident() == self._own_thread

    def _map(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self._arguments.clear()
        self._forget_results()
        self._ledger = None
        arenas = [Arena.open(fd, size) for fd, size in zip(fds, request["sizes"], strict=True)]
        self._inputs, self._outputs = arenas[0], arenas[1] if len(arenas) > 1 else None
        for arena in arenas:
            arena.close()
        return {"ok": True}

    def _construct(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Build the module with the reference's random state, then share its parameters.

        Parameters move into the input arena, where the judge has put the reference's values. So the
        judge can see whether a call changed them, and a program that draws its parameters in
        another order still computes the same function.
        """
        assert self._inputs is not None
        self._most_kept = request["kept"]
        del self._kept[self._most_kept :]
        arguments = pickle.loads(base64.b64decode(request["arguments"]))
        kind = getattr(self._programs[request["program"]], self._entry)
        check_signature(kind, arguments, f"{self._entry}()")
        model = self._build(kind, arguments, request["seed"])
        if not isinstance(model, torch.nn.Module):
            raise SignatureMismatch(f"{self._entry} must derive from torch.nn.Module")
        lacking = set(request["parameters"]) | set(request["statistics"])
        redrawn = 0
        for name, parameter, shared in counterparts(
            model.named_parameters(), request["parameters"]
        ):
            differs = adopt(parameter, self._inputs.view(shared))
            redrawn += differs and name not in request["unlike_new"]
            lacking.discard(name)
        for name, buffer, shared in counterparts(model.named_buffers(), request["statistics"]):
            buffer.copy_(self._inputs.view(shared))  # a call may change it
            lacking.discard(name)
        if self._compiled:
            model = _compile(model, self._compiled)
        self._models[request["key"]] = model
        return {"ok": True, "redrawn": redrawn, "lacking": sorted(lacking)[:_NAMED]}

    def _build(self, kind: Any, arguments: list[Any], seed: int) -> Any:
        torch.default_generator.manual_seed(seed)
        return kind(*arguments)

    def _bind(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        assert self._inputs is not None
        self._forget_results()
        model = self._models[request["key"]]
        self._model = model
        if request.get("ledger"):
            self._ledger = Ledger(self._inputs.view(Slot.from_json(request["ledger"])))
        self._arguments = [
            unflatten(template, [self._inputs.view(Slot.from_json(slot)) for slot in slots])
            for template, slots in request["calls"]
        ]
        if request.get("check"):
            check_signature(model.forward, self._arguments[0], "forward()")
        return {"ok": True}

    def _release(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Let go of all that belongs to a workload."""
        self._model = None
        self._models.clear()
        self._arguments.clear()
        self._results.clear()
        self._placed.clear()
        self._kept.clear()
        self._ledger = None
        self._inputs = self._outputs = None
        return {"ok": True}

    def _forget_results(self) -> None:
        """All but a few, whose memory must not come back as the memory of a later result."""
        if self._results and len(self._kept) < self._most_kept:
            tensors: list[torch.Tensor] = []
            flatten_result(self._results[0], tensors)
            self._kept.append([tensor for tensor in tensors if self._is_dense(tensor)])
        self._results.clear()
        self._placed.clear()

    def _go(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        model, results, now = self._model, self._results, time.perf_counter_ns
        assert model is not None
        ledger = self._ledger
        places: list[Any] = []
        stamps = [now()]
        with torch.no_grad():
            for arguments in self._arguments[: request["calls"]]:
                result = model(*arguments)
                results.append(result)
                if ledger is not None:
                    place = self._place(result)
                    ledger.enter(len(places), place)
                    places.append(place)
                stamps.append(now())
        self._stamps = stamps
        answer = {"done": request["nonce"]}
        if request.get("places"):
            entered = ledger is not None
            answer["at"] = places if entered else [self._place(result) for result in results]
        return answer

    def _place(self, result: Any) -> Any:
        """The address of a result, with strides where they are not the usual ones.

        The clock is running: the common case must be short.
        """
        plain = type(result) is torch.Tensor and result.layout is torch.strided
        if plain and result.is_contiguous() and not result.is_conj() and not result.is_neg():
            return result.data_ptr()
        tensors = self._resolved(result)
        return [[t.data_ptr(), t.stride()] if self._is_dense(t) else [0, ()] for t in tensors]

    def _resolved(self, result: Any) -> list[torch.Tensor]:
        """The tensors of a result with their values in memory, which is kept until it was read."""
        tensors: list[torch.Tensor] = []
        flatten_result(result, tensors)
        tensors = [t.resolve_conj().resolve_neg() if self._is_dense(t) else t for t in tensors]
        self._placed.append(tensors)
        return tensors

    def _collect(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        seen = {tensor.data_ptr() for kept in self._kept for tensor in kept}
        first: dict[str, Any] | None = None
        odd: list[Any] = []
        # A plain number has a tensor only here: were it let go of, its address would come back.
        held: list[list[torch.Tensor]] = []
        for index, result in enumerate(self._results):
            tensors: list[torch.Tensor] = []
            held.append(tensors)
            tree = flatten_result(result, tensors)
            described = {"tree": tree, "tensors": [self._describe(t, seen) for t in tensors]}
            if first is None:
                first = described
            elif described != first and not odd:
                odd = [index, described]
            if request["slots"]:
                self._copy_out(tensors, request["slots"][index])
                self._spoil(tensors, request.get("own", []))
        gaps = [b - a for a, b in zip(self._stamps, self._stamps[1:], strict=False)]
        inner = statistics.median(gaps) / 1e9 if gaps else 0.0
        return {"first": first, "odd": odd, "count": len(self._results), "inner": inner}

    def _copy_out(self, tensors: list[torch.Tensor], slots: list[Any]) -> None:
        assert self._outputs is not None
        for tensor, described in zip(tensors, slots, strict=False):
            slot = Slot.from_json(described)
            alike = tuple(tensor.shape) == slot.shape and dtype_name(tensor.dtype) == slot.dtype
            if alike and self._is_dense(tensor):
                self._outputs.view(slot).copy_(tensor)

    def _spoil(self, tensors: list[torch.Tensor], own: list[bool]) -> None:
        """Leave nothing in memory that comes back to the program: the judge cannot do it here."""
        for tensor, may_be_overwritten in zip(tensors, own, strict=False):
            if may_be_overwritten and self._is_dense(tensor):
                # What is expanded cannot be filled, and is refused later.
                with torch.no_grad(), contextlib.suppress(RuntimeError):
                    spoil(tensor)

    def _describe(self, tensor: torch.Tensor, seen: set[int]) -> dict[str, Any]:
        assert self._inputs is not None
        dense = self._is_dense(tensor)
        address = tensor.data_ptr() if dense else 0
        reused = address in seen and tensor.numel() > 0
        seen.add(address)
        return {
            "shape": list(tensor.shape),
            "dtype": dtype_name(tensor.dtype),
            "stride": list(tensor.stride()) if dense else list(contiguous_stride(tensor.shape)),
            "dense": dense,
            "aliases": dense and self._inputs.contains(address),
            "reused": reused,
        }

    def _is_dense(self, tensor: torch.Tensor) -> bool:
        return tensor.layout == torch.strided and tensor.device.type == self.device


def spoil(result: torch.Tensor) -> None:
    """Change every element."""
    if result.is_floating_point() or result.is_complex():
        result.fill_(torch.nan)
    else:
        result.bitwise_not_()
