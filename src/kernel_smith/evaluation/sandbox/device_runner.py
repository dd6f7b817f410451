"""The loop inside a timed process whose kernels run on a GPU.

Calls are timed in two ways. *Plain* calls run forward once per input set, as on the CPU. A *replay*
launches all of them at once, as a CUDA graph that was captured beforehand over the same memory:
then no time is spent in Python, and none of its code runs while the clock does.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, cast

import torch
from torch.utils._pytree import tree_leaves, tree_map_only

from kernel_smith.evaluation.sandbox import triton_tools
from kernel_smith.evaluation.sandbox.complaints import LONGEST_TRACEBACK
from kernel_smith.evaluation.sandbox.device_memory import DeviceArena
from kernel_smith.evaluation.sandbox.doorbell import Doorbell
from kernel_smith.evaluation.sandbox.inductor_tools import announce_compiling
from kernel_smith.evaluation.sandbox.kernel_events import kernel_events, profiling
from kernel_smith.evaluation.sandbox.result_memory import ResultMemory
from kernel_smith.evaluation.sandbox.runner import Handler, Runner, spoil
from kernel_smith.evaluation.sandbox.wire import Channel
from kernel_smith.inline.library import Device

_PATIENCE = 10.0
_MUCH_RESERVED = 64 << 20
ONE_MORE = "one more"  # asked for: is there another call to be captured?
_STREAM_OF_THREAD = 2  # `cudaStreamPerThread`


class DeviceRunner(Runner):
    device: Device = "cuda"

    def __init__(self, channel: Channel) -> None:
        super().__init__(channel)
        self._graph: torch.cuda.CUDAGraph | None = None
        self._nothing: torch.cuda.CUDAGraph | None = None
        self._events: tuple[torch.cuda.Event, torch.cuda.Event] | None = None
        self._has_events = False  # around the last batch
        self._no_device: Exception | None = None
        self._bell: Doorbell | None = None
        self._memory: ResultMemory | None = None
        self._launches: triton_tools.LaunchSwitch | None = None
        try:
            self._prepare()
        except Exception as error:
            self._no_device = error

    def _prepare(self) -> None:
        """While the judge does other things: a context takes half a second, and the library for
        products a tenth."""
        self._tiny = torch.zeros(1, device=self.device)
        torch.mm(self._tiny.view(1, 1), self._tiny.view(1, 1))
        torch._C._cuda_clearCublasWorkspaces()
        torch.cuda.empty_cache()  # calls get their memory elsewhere
        self._memory = ResultMemory()
        self._nothing = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._nothing):
            self._tiny.zero_()
        event = partial(torch.cuda.Event, enable_timing=True)
        self._events = (event(), event())

    def _handlers(self) -> dict[str, Handler]:
        return super()._handlers() | {
            "device": self._device,
            "capture": self._capture,
            "chunks": self._chunks,
            "profiler": self._attach_profiler,
            "profile": self._profile,
        }

    def _device(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Asked first, before any code of the candidate's has run."""
        self._bell = Doorbell(fds[0])
        return {"missing": None if self._no_device is None else str(self._no_device)}

    def _load(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        allow_tf32 = request["tf32"]
        torch.backends.cuda.matmul.allow_tf32 = allow_tf32
        torch.backends.cudnn.allow_tf32 = allow_tf32
        torch.cuda.set_per_process_memory_fraction(request["memory_share"])
        if request["confined"] and triton_tools.is_usable():
            triton_tools.ask_for_compilers(self._ask_for_object, self._tell)
        if request.get("compiled"):
            announce_compiling(self._tell)
        if (request["disarmed"] or request["switched"]) and triton_tools.is_usable():
            self._launches = triton_tools.LaunchSwitch(off=request["disarmed"])
        return super()._load(request, fds)

    def _tell(self, what: str) -> None:
        if self._is_own_thread():
            self._channel.send({"need": what})
            self._channel.receive()

    def _map(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self._arguments.clear()
        self._forget_results()
        if self._inputs is not None:
            self._inputs.close()
        self._inputs = DeviceArena.open(fds[0], request["sizes"][0])
        return {"ok": True}

    def _release(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self._graph = None
        arena = self._inputs
        answer = super()._release(request, fds)
        if arena is not None:
            arena.close()
        # They were made in the midst of calls, where all memory comes in chunks.
        torch._C._cuda_clearCublasWorkspaces()
        if self._memory is not None:
            self._memory.reset()
        torch.cuda.empty_cache()
        return answer

    def _build(self, kind: Any, arguments: list[Any], seed: int) -> Any:
        torch.cuda.default_generators[torch.cuda.current_device()].manual_seed(seed)
        with torch.device(self.device):
            model = super()._build(kind, arguments, seed)
        return model.to(self.device) if isinstance(model, torch.nn.Module) else model

    def _construct(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """The parameters that were drawn give way to shared ones, which may be large."""
        answer = super()._construct(request, fds)
        if torch.cuda.memory_reserved() > _MUCH_RESERVED:
            torch.cuda.empty_cache()
        return answer

    def _bind(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        self._graph = None
        return super()._bind(request, fds)

    def _capture(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Record the bound calls, without running them; answered with why, if that is refused.

        While calls are recorded nothing runs, so a program cannot find out by trying whether its
        launches do anything: what is timed and what is recorded `disarmed` look alike to it.
        """
        launches, one_by_one = self._launches, request["one_by_one"]
        if not request["disarmed"] or launches is None:
            return self._record(one_by_one)
        launches.off, before = True, launches.off
        try:
            return self._record(one_by_one)
        finally:
            launches.off = before

    def _record(self, one_by_one: bool) -> dict[str, Any]:
        assert self._memory is not None and self._model is not None
        self._forget_results()
        self._memory.turn_to("captured")
        graph, pool = torch.cuda.CUDAGraph(), cast(Any, self._memory.pool.id)
        stream = torch.cuda.current_stream()
        # Unlike PyTorch's own streams it is ordered with the default one: what a candidate launches
        # there ends the capture with an error, instead of being left out of it silently.
        ordered = cast(Any, torch.cuda).ExternalStream(_STREAM_OF_THREAD)
        try:
            with torch.no_grad(), torch.cuda.graph(graph, pool=pool, stream=ordered):
                for arguments in self._arguments:
                    self._results.append(self._model(*arguments))
                    if one_by_one and not self._is_there_another():
                        break
        except Exception as error:
            self._results.clear()
            self._clean_up_after_capture(stream)
            return {"refused": f"{type(error).__name__}: {error}"[:LONGEST_TRACEBACK]}
        self._graph = graph
        return {"at": [self._place(result) for result in self._results]}

    def _is_there_another(self) -> bool:
        self._channel.send({"need": ONE_MORE})
        return bool(self._channel.receive().get("more"))

    def _clean_up_after_capture(self, stream: torch.cuda.Stream) -> None:
        """One that fails leaves PyTorch in the midst of it: allocating from the pool, on a stream
        of its own, with a generator of random numbers that waits for the end."""
        assert self._memory is not None
        torch.cuda.set_stream(stream)
        self._memory.abandon_pool()
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
        generator.graphsafe_set_state(generator.clone_state())

    def _go(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Take over the device, say so, and start when the doorbell rings.

        Switching a GPU to another process takes 100 to 200 us, and never the same time. Between
        bell and answer is nothing but the work: events around it, and asking for them, take longer
        than many a kernel, and are for batches that nobody times.
        """
        assert self._bell is not None and self._nothing is not None and self._events is not None
        work = self._work(request)
        self._nothing.replay()
        torch.cuda.synchronize()
        self._channel.send({"ready": request["mark"]})
        if not self._bell.await_ring(request["mark"], _PATIENCE):
            raise TimeoutError("the judge did not ring")
        self._has_events = request["events"]
        if self._has_events:
            self._events[0].record()
        answer = work()
        if self._has_events:
            self._events[1].record()
        torch.cuda.synchronize()
        self._bell.finish(request["mark"])
        return answer if answer is not None else {"done": request["nonce"]}

    def _work(self, request: dict[str, Any]) -> Callable[[], dict[str, Any] | None]:
        """What is to be done when the doorbell rings."""
        replayed = {"replay": self._graph, "nothing": self._nothing}.get(request["how"])
        if replayed is not None:
            return replayed.replay
        assert self._memory is not None
        self._memory.turn_to("plain")
        how = self._call_and_copy if request["how"] == "copied" else self._call_plainly
        return partial(how, request)

    def _call_plainly(self, request: dict[str, Any]) -> dict[str, Any]:
        assert self._memory is not None
        with self._memory.in_use():
            return super()._go(request, [])

    def _call_and_copy(self, request: dict[str, Any]) -> dict[str, Any]:
        """One call, and its result as a kernel finds it that follows on the current stream.

        The copy is not to come late, so its memory is there before, and the end is copied first: a
        kernel that is still at work has begun at the other one. And the memory of a first result,
        which the second one is likely to get, is not to hold the right values already.
        """
        assert self._memory is not None and self._model is not None
        with self._memory.in_use(), torch.no_grad():
            first = self._model(*self._arguments[0])
            copied = tree_map_only(torch.Tensor, torch.zeros_like, first)
            copies = tree_leaves(copied)
            tree_map_only(torch.Tensor, spoil, first)
            del first
            torch.cuda.synchronize()
            result = self._model(*self._arguments[0])
            leaves = [result] if copied is copies[0] else tree_leaves(result)
            for copy, leaf in zip(copies, leaves, strict=True):
                if isinstance(leaf, torch.Tensor):
                    _copy_end_first(copy, leaf)
        self._results.append(copied)
        return {"done": request["nonce"], "at": [self._place(copied)]}

    def _place(self, result: Any) -> Any:
        """Per tensor: the chunk that it lies in, where in it, and its strides."""
        assert self._memory is not None
        if type(result) is torch.Tensor and self._is_dense(result) and not result.is_conj():
            tensors = [result]
        else:
            tensors = self._resolved(result)
        places: list[Any] = []
        for tensor in tensors:
            found = self._memory.locate(tensor.data_ptr()) if self._is_dense(tensor) else None
            places.append([*(found or (-1, 0)), tensor.stride() if found else ()])
        return places

    def _collect(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        assert self._events is not None
        answer = super()._collect(request, fds)
        if not self._has_events:
            return answer
        calls = max(len(self._results), 1)
        return answer | {"inner": self._events[0].elapsed_time(self._events[1]) / 1e3 / calls}

    def _chunks(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Hand over the memory that results lie in."""
        assert self._memory is not None
        sizes, descriptors = self._memory.announce(request["most"])
        self._handed_over.extend(descriptors)
        return {"sizes": sizes}

    def _attach_profiler(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Takes a while the first time, in which others may have the device."""
        with profiling():
            pass
        return {}

    def _profile(self, request: dict[str, Any], fds: list[int]) -> dict[str, Any]:
        """Which kernels the bound calls launch. Advice: the process may say what it likes."""
        model = self._model
        assert model is not None and self._memory is not None
        self._memory.turn_to("plain")
        with (
            self._memory.in_use(),
            torch.no_grad(),
            profiling() as profiler,
        ):
            for arguments in self._arguments:
                model(*arguments)
            torch.cuda.synchronize()
        return {"kernels": kernel_events(profiler)}


def _copy_end_first(copy: torch.Tensor, result: torch.Tensor) -> None:
    last = len(result) * 63 // 64 if result.dim() else 0
    if last > 0:
        copy[last:].copy_(result[last:])
        copy, result = copy[:last], result[:last]
    copy.copy_(result)
