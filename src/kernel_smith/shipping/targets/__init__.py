"""Projects that a kernel can be shipped to as a patch, one file for each.

An adapter (`base.py`) knows where such an operation lives in a checkout: folders, registration,
tests, licence header, formatters. `op.py` writes the operation, `patch.py` the patch.
"""

from __future__ import annotations

from kernel_smith.errors import BadInput
from kernel_smith.shipping.targets.base import Target
from kernel_smith.shipping.targets.flash_linear_attention import FlashLinearAttention
from kernel_smith.shipping.targets.lmdeploy import LMDeploy
from kernel_smith.shipping.targets.sglang import SGLang
from kernel_smith.shipping.targets.vllm import VLLM

TARGETS: dict[str, Target] = {
    target.name: target for target in (SGLang(), LMDeploy(), VLLM(), FlashLinearAttention())
}


def find_target(name: str) -> Target:
    """Return the adapter of that name. Raises `BadInput`."""
    if name not in TARGETS:
        known = ", ".join(TARGETS)
        raise BadInput(
            f"no project is called {name!r}, expected one of {known}",
            hint=f"choose one of {known}; without --project, a package is written",
        )
    return TARGETS[name]
