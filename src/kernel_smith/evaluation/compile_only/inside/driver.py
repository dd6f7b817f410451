"""A Triton driver without a device: kernels are compiled, measured and counted, never launched."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import torch
import triton
from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from kernel_smith.evaluation.compile_only.inside.measure import read_ptxas_log
from kernel_smith.evaluation.compile_only.inside.recorder import Recorder


class CompileOnlyDriver(DriverBase):  # type: ignore[misc]
    """What Triton asks a driver, answered for a device that need not exist."""

    def __init__(self, target: dict[str, Any], recorder: Recorder) -> None:
        super().__init__()
        self._target = target
        self._recorder = recorder
        self.utils = SimpleNamespace(
            get_device_properties=self._properties,
            load_binary=self._load_binary,
            set_printf_fifo_size=lambda size: None,
        )

    @classmethod
    def is_active(cls) -> bool:
        return True

    def get_current_target(self) -> GPUTarget:
        kind = self._target["kind"]
        major, minor = self._target["capability"]
        arch = self._target["name"] if kind == "hip" else 10 * major + minor
        return GPUTarget(kind, arch, self._target["warp"])

    def get_current_device(self) -> int:
        return 0

    def set_current_device(self, device: int) -> None:
        pass

    def get_current_stream(self, device: int | None = None) -> int:
        return 0

    def get_active_torch_device(self) -> torch.device:
        return torch.device("cuda", 0)

    def get_device_interface(self) -> Any:
        return torch.cuda

    def map_python_to_cpp_type(self, ty: str) -> str:
        raise NotImplementedError("nothing is launched, so no launcher is built")

    def assemble_tensormap_to_arg(self, tensormaps_info: Any, args: Any) -> Any:
        return args

    def get_benchmarker(self) -> Callable[..., list[float]]:
        return self._try_once

    def launcher_cls(self, src: Any, metadata: Any) -> Callable[..., None]:
        return lambda *args, **kwargs: self._recorder.launched(metadata.hash)

    def _try_once(self, kernel_call: Callable[[], Any], **kwargs: Any) -> list[float]:
        """Without a device no configuration is faster than another: the first that fits is used."""
        self._recorder.tuning = True
        try:
            kernel_call()
        finally:
            self._recorder.tuning = False
        return [1.0, 1.0, 1.0]

    def _properties(self, device: int = 0) -> dict[str, Any]:
        target, stock = self._target, self._target["stock"]
        registers = {} if stock is None else {"max_num_regs": stock["registers"]}
        return registers | {
            "max_shared_mem": target["shared_bytes"],
            "multiprocessor_count": target["multiprocessors"],
            "warpSize": target["warp"],
            "arch": target["name"],
            "sm_clock_rate": 1_500_000,
            "mem_clock_rate": 1_500_000,
            "mem_bus_width": 5120,
        }

    def _load_binary(self, name: str, binary: bytes, shared: int, device: int) -> tuple[Any, ...]:
        """Module, function, registers, spilled registers, largest number of threads."""
        kernel = self._recorder.of_binary(binary)
        registers = (kernel and kernel.registers) or 0
        spills = (kernel and kernel.spill_bytes) or 0
        return object(), 0, registers, spills // 4, self._target["threads_per_block"]


class _ListeningSubprocess:
    """The `subprocess` module, as Triton's NVIDIA backend sees it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder

    def __getattr__(self, name: str) -> Any:
        return getattr(subprocess, name)

    def run(self, command: Any, **kwargs: Any) -> Any:
        """Triton has ptxas say what it used, and then throws the text away."""
        done = subprocess.run(command, **kwargs)
        log = getattr(kwargs.get("stderr"), "name", None)
        if log is not None:
            with open(log, encoding="utf-8", errors="replace") as file:
                self._recorder.usage = read_ptxas_log(file.read())
        return done


def install(target: dict[str, Any], recorder: Recorder) -> None:
    """From here on Triton compiles for `target` and launches nothing."""
    if target["kind"] == "cuda":
        import triton.backends.nvidia.compiler as nvidia  # other vendors' Triton may lack it

        nvidia.subprocess = _ListeningSubprocess(recorder)
    # By which Triton its cache was made would take reading half a gigabyte; here it is always new.
    triton.runtime.cache.triton_key = lambda: triton.__version__
    triton.compiler.compile = recorder.compile
    triton.compile = recorder.compile
    triton.runtime.driver.set_active(CompileOnlyDriver(target, recorder))
