"""SGLang: operations are grouped by what they do; a group lists its Triton kernels by name.

Tests under `test/registered` say themselves which machines of its CI they run on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial

from kernel_smith.shipping.targets.base import Target
from kernel_smith.shipping.targets.op import Op

_GROUPS = {
    "activation": "activation",
    "attention": "attention",
    "fused-matmul": "gemm",
    "kv-cache": "kvcache",
    "matmul": "gemm",
    "moe-routing": "moe",
    "normalisation": "layernorm",
    "positional": "attention",
    "quantisation": "quantization",
    "scan": "mamba",
    "serving": "kvcache",
}
"""The family of a task -> SGLang's group; `elementwise` for others."""
_LIST = "_TRITON_KERNELS = [\n"


class SGLang(Target):
    name = "sglang"
    root = "python"
    folder = "sglang/kernels/ops"
    tests = "test/registered/kernels/ops"
    benchmarks = "benchmark/kernels"
    formatters = (("isort",), ("black",))

    def _group(self, op: Op) -> str:
        return _GROUPS.get(op.family, "elementwise")

    def module_folder(self, op: Op) -> str:
        return f"{self.folder}/{self._group(op)}"

    def test_folder(self, op: Op) -> str:
        return f"{self.tests}/{self._group(op)}"

    def test_extra(self, op: Op) -> str:
        return (
            "register_cuda_ci(\n"
            '    est_time=20, stage="base-b-kernel-unit", runner_config="1-gpu-large"\n'
            ")\n"
        )

    def test_ending(self, op: Op) -> str:
        return '\n\nif __name__ == "__main__":\n    sys.exit(pytest.main([__file__, "-v", "-s"]))\n'

    def adapted(self, text: str) -> str:
        if "register_cuda_ci(" not in text:
            return text
        own = "from sglang.test.ci.ci_register import register_cuda_ci\n"
        text = text.replace("import pytest\n", "import sys\n\nimport pytest\n", 1)
        return text.replace("import torch\n", f"import torch\n\n{own}", 1)

    def registered(self, op: Op) -> Mapping[str, Callable[[str], str]]:
        path = f"{self.root}/{self.module_folder(op)}/__init__.py"
        return {path: partial(_listed, op=op, group=self._group(op))}


def _listed(text: str, op: Op, group: str) -> str:
    entry = f'    ("{op.name}", "{op.kind}"),\n'
    before, listed, after = text.partition(_LIST)
    if listed:
        end = after.index("]\n")
        return before + listed + after[:end] + entry + after[end:]
    # A group without such a list, or one that keeps another kind of it.
    return text + _REGISTERED.format(group=group, name=op.name, kind=op.kind)


_REGISTERED = """
from sglang.kernels.registry import register_kernel
from sglang.kernels.spec import KernelBackend, KernelSpec

register_kernel(
    KernelSpec(
        op="{group}.{kind}",
        backend=KernelBackend.TRITON,
        target="sglang.kernels.ops.{group}.{name}:{kind}",
    )
)
"""
