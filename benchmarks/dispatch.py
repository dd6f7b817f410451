"""What a drop-in module adds to a call: the decision between kernel and reference, and the checks
of `inline`.

    python benchmarks/dispatch.py

Times are the smallest of many repetitions, since a decision has no reason to take longer.
"""

from __future__ import annotations

import sys
import timeit
from collections.abc import Callable
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "shipping"))
from shipping_samples import NORM_KERNEL, WIDTH, RMSNorm, replacement_of

CALLS, REPETITIONS = 20, 3000


def microseconds(call: Callable[[], object]) -> float:
    return min(timeit.repeat(call, number=CALLS, repeat=REPETITIONS)) / CALLS * 1e6


def main() -> None:
    module, x, other = RMSNorm(), torch.randn(8, WIDTH), torch.randn(5, WIDTH)
    replacement = replacement_of(module, x, NORM_KERNEL)
    fast = replacement.module(module)
    kernel = replacement.kernel_of_thread()
    with torch.no_grad():
        fast(x)
        taken = microseconds(lambda: fast.forward(x)) - microseconds(lambda: kernel.forward(x))
        refused = microseconds(lambda: fast.forward(other)) - microseconds(
            lambda: module.forward(other)
        )
    print(f"torch {torch.__version__}, {sys.version.split()[0]}")
    print(f"a call that takes the kernel:    {taken:6.2f} us more than the kernel alone")
    print(f"a call that takes the reference: {refused:6.2f} us more than the reference alone")


if __name__ == "__main__":
    main()
