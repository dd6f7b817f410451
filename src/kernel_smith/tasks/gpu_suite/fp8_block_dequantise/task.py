"""Turn fp8 (e4m3) weights with one scale per 128x128 block back into wide numbers: loading
DeepSeek-V3 weights, and its products where no fp8 units exist. The weights arrive as bytes."""

import torch

TASK = {
    "family": "quantisation",
    "workloads": {
        "small": {"rows": 200, "columns": 330},
        "projection": {"rows": 7168, "columns": 16384, "dtype": "bfloat16"},
        "experts": {"rows": 4096, "columns": 7168, "dtype": "float16"},
        "odd": {"rows": 5003, "columns": 7001},
    },
    "library_calls": False,
}

BLOCK = 128


class Model(torch.nn.Module):
    def forward(self, weights: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
        rows, columns = weights.shape
        spread = scales.repeat_interleave(BLOCK, dim=0)[:rows]
        spread = spread.repeat_interleave(BLOCK, dim=1)[:, :columns]
        return weights.view(torch.float8_e4m3fn).to(scales.dtype) * spread


def get_inputs(
    rows: int = 7168, columns: int = 16384, dtype: str = "float32"
) -> list[torch.Tensor]:
    weights = (torch.randn(rows, columns) * 40).clamp(-448, 448).to(torch.float8_e4m3fn)
    blocks = ((rows + BLOCK - 1) // BLOCK, (columns + BLOCK - 1) // BLOCK)
    return [weights.view(torch.uint8), torch.rand(blocks, dtype=getattr(torch, dtype)) * 0.1 + 0.01]
