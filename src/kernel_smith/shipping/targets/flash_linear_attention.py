"""flash-linear-attention: fused operations of a layer are modules of `fla.modules`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from kernel_smith.shipping.targets.base import Target, exported
from kernel_smith.shipping.targets.op import Op


class FlashLinearAttention(Target):
    name = "flash-linear-attention"
    folder = "fla/modules"
    tests = "tests/modules"
    benchmarks = "benchmarks/modules"
    interpreting = "--noconftest"  # which waits for a GPU after each test
    width = 127
    header = (
        "# This source code is licensed under the MIT license found in the\n"
        "# LICENSE file in the root directory of this source tree.\n"
        "# For a list of all contributors, visit:\n"
        "#   https://github.com/fla-org/flash-linear-attention/graphs/contributors\n\n"
    )
    formatters = (("ruff", "check", "--fix"), ("ruff", "format"))

    def registered(self, op: Op) -> Mapping[str, Callable[[str], str]]:
        statement = f"from fla.modules.{op.name} import {op.kind}\n"
        return {f"{self.folder}/__init__.py": partial(exported, statement=statement, name=op.kind)}
