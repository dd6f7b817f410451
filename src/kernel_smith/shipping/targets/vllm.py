"""vLLM: Triton kernels are modules of their own, imported by whoever uses them.

Triton itself is imported by way of vLLM, which puts something empty in its place without a GPU.
"""

from __future__ import annotations

import re

from kernel_smith.shipping.targets.base import Target

_TRITON = re.compile(r"^import triton(\.language as tl)?\n", re.MULTILINE)


class VLLM(Target):
    name = "vllm"
    folder = "vllm/kernels/triton"
    tests = "tests/kernels/core"
    benchmarks = "benchmarks/kernels"
    has_interpreter = False
    header = (
        "# SPDX-License-Identifier: Apache-2.0\n"
        "# SPDX-FileCopyrightText: Copyright contributors to the vLLM project\n"
    )
    formatters = (
        ("ruff", "check", "--fix", "--config", "lint.isort.known-first-party=['vllm']"),
        ("ruff", "format"),
    )

    def adapted(self, text: str) -> str:
        names = ["tl"] if "\nimport triton.language as tl\n" in text else []
        names += ["triton"] if "\nimport triton\n" in text else []
        if not names:
            return text
        own = f"from vllm.triton_utils import {', '.join(names)}\n"
        first, *_ = _TRITON.finditer(text)
        return text[: first.start()] + own + _TRITON.sub("", text[first.start() :])
