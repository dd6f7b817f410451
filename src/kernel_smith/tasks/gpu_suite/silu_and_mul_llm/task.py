"""SiLU of the first half of each row times the second half: the activation between the two
projections of every Llama, Qwen and DeepSeek feed-forward layer."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"tokens": 13, "intermediate": 1000, "dtype": "float32"},
        "decode": {"tokens": 64, "intermediate": 14336, "dtype": "bfloat16"},
        "prefill": {"tokens": 4096, "intermediate": 14336, "dtype": "bfloat16"},
        "odd": {"tokens": 1021, "intermediate": 10999, "dtype": "float16"},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = x.chunk(2, dim=-1)
        return F.silu(gate) * up


def get_inputs(
    tokens: int = 64, intermediate: int = 14336, dtype: str = "bfloat16"
) -> list[torch.Tensor]:
    return [torch.randn(tokens, 2 * intermediate, dtype=getattr(torch, dtype))]
