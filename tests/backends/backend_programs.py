"""Programs of every case of the backend suite, in every dialect of ours."""

from __future__ import annotations

_AROUND = '''
import torch
from kernel_smith.inline import {dialect}

kernels = {dialect}(r"""{source}""")


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        {calls}
'''

_RIGHT = "kernels.combine(x, y, out, x.numel())\n        return out"
_CPP = """
#include <cstdint>

extern "C" void combine({const}float* x, const float* y, float* out, int64_t n) {{
    for (int64_t i = 0; i < n; ++i) {{ {body} }}
}}
"""
_GPU = """
#include <cstdint>
#include <{header}>

__global__ void combine_kernel({const}float* x, const float* y, float* out, int64_t n) {{
    int64_t i = blockIdx.x * (int64_t)blockDim.x + threadIdx.x;
    if (i < n) {{ {body} }}
}}

extern "C" void combine({const}float* x, const float* y, float* out, int64_t n, {stream} stream) {{
    combine_kernel<<<(n + 127) / 128, 128, 0, stream>>>(x, y, out, n);
}}
"""
_HEADERS = {"cuda": "cuda_runtime.h", "maca": "mc_runtime.h", "hip": "hip/hip_runtime.h"}
_STREAMS = {"cuda": "cudaStream_t", "maca": "mcStream_t", "hip": "hipStream_t"}

# What a kernel does for element i, and whether it only reads x.
_BODIES = {
    "honest": ("out[i] = 3.0f * x[i] + y[i];", True),
    "wrong_values": ("out[i] = 2.0f * x[i] + y[i];", True),
    "last_elements_left_out": ("if (i < n - 3) out[i] = 3.0f * x[i] + y[i];", True),
    "does_not_compile": ("out[i] = 3.0f * x[i] + undeclared;", True),
    "crashes": ("out[i + (int64_t(1) << 40)] = 3.0f * x[i] + y[i];", True),
    "hangs": ("volatile float* at = out; while (true) at[i] = at[i] + 1.0f;", True),
    "writes_inputs": ("out[i] = 3.0f * x[i] + y[i]; x[i] = 0.0f;", False),
}


def programs(dialect: str) -> dict[str, str]:
    """For a dialect of `kernel_smith.inline`."""
    made = {case: _program(dialect, *body, _RIGHT) for case, body in _BODIES.items()}
    library = "return torch.add(y, x, alpha=3.0)"
    decoy = f"kernels.combine(x, y, out, x.numel())\n        {library}"
    made["decoy"] = _program(dialect, *_BODIES["honest"], decoy)
    made["no_kernel"] = (
        "import torch\n\n\nclass ModelNew(torch.nn.Module):\n"
        f"    def forward(self, x, y):\n        {library}\n"
    )
    return made


def _program(dialect: str, body: str, reads_x: bool, calls: str) -> str:
    const = "const " if reads_x else ""
    if dialect == "cpp":
        source = _CPP.format(const=const, body=body)
    else:
        source = _GPU.format(
            const=const, body=body, header=_HEADERS[dialect], stream=_STREAMS[dialect]
        )
    return _AROUND.format(dialect=dialect, source=source, calls=calls)
