"""SwiGLU: silu of one half of the features times the other half, as between the linear layers of a
Llama block (often called silu-and-mul)."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "elementwise",
    "workloads": {
        "prefill": {"tokens": 128, "hidden": 512},
        "odd": {"tokens": 61, "hidden": 683},
        "decode_bfloat16": {"tokens": 8, "hidden": 2816, "dtype": "bfloat16"},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, gate_and_up: torch.Tensor) -> torch.Tensor:
        gate, up = gate_and_up.chunk(2, dim=-1)
        return F.silu(gate) * up


def get_inputs(tokens: int = 128, hidden: int = 512, dtype: str = "float32") -> list[torch.Tensor]:
    return [torch.randn(tokens, 2 * hidden, dtype=getattr(torch, dtype)) * 2]
