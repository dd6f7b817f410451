"""A stand-in for the backend that MetaX's Triton has for MACA, made of Triton's own for AMD.

It is asked what MetaX's is asked, looks into the MACA SDK as that does, and names its products
alike; the code in them is AMD's. A candidate that begins with it registers it in the sandbox.
"""

import os
import subprocess
from typing import Any

from triton.backends import Backend, backends
from triton.backends.amd.compiler import HIPBackend
from triton.backends.compiler import BaseBackend, GPUTarget


class MACABackend(HIPBackend):  # type: ignore[misc]
    @staticmethod
    def supports_target(target: GPUTarget) -> bool:
        return bool(target.backend == "maca")

    def __init__(self, target: GPUTarget) -> None:
        assert target == GPUTarget("maca", 80, 64)
        BaseBackend.__init__(self, target)
        self.target = GPUTarget("hip", "gfx90a", 64)
        self.binary_ext = "mcfatbin"

    def hash(self) -> str:
        sdk = os.environ["MACA_PATH"]
        version = subprocess.check_output([f"{sdk}/mxgpu_llvm/bin/mxcc", "--version"], text=True)
        with open(f"{sdk}/lib/maca_mathlib.bc") as library:
            return version + library.read()

    def add_stages(self, stages: dict[str, Any], options: Any, language: Any) -> None:
        super().add_stages(stages, options, language)
        rest = [stages.pop(name) for name in ("llir", "amdgcn", "hsaco")]

        def make_mcfatbin(module: Any, metadata: dict[str, Any]) -> Any:
            for stage in rest:
                module = stage(module, metadata)
            return module

        stages["mcfatbin"] = make_mcfatbin


backends["metax"] = Backend(compiler=MACABackend, driver=backends["amd"].driver)
