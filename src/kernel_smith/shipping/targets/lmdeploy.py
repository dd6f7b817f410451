"""LMDeploy: kernels of its PyTorch engine, one file each, named in the package's list."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from kernel_smith.shipping.targets.base import Target, exported
from kernel_smith.shipping.targets.op import Op


class LMDeploy(Target):
    name = "lmdeploy"
    folder = "lmdeploy/pytorch/kernels/cuda"
    tests = "tests/pytorch/kernel"
    benchmarks = "benchmark"
    has_interpreter = False  # its package asks for a GPU's driver when it is imported
    width = 120
    header = "# Copyright (c) OpenMMLab. All rights reserved.\n"
    formatters = (
        ("ruff", "format", "--config", "format.quote-style='single'"),
        ("ruff", "check", "--fix"),
        ("docformatter", "--in-place", "--wrap-descriptions", "120"),
    )

    def registered(self, op: Op) -> Mapping[str, Callable[[str], str]]:
        statement = f"from .{op.name} import {op.kind}\n"
        return {f"{self.folder}/__init__.py": partial(exported, statement=statement, name=op.kind)}
