"""Add the residual, then RMS normalisation of the sum; both the normalised and the new residual are
returned. Llama-style decoders do this twice per layer."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "normalisation",
    "workloads": {
        "prefill": {"tokens": 128, "hidden": 768},
        "odd": {"tokens": 71, "hidden": 1001},
        "decode_bfloat16": {"tokens": 8, "hidden": 4096, "dtype": "bfloat16"},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, hidden: int, dtype: str) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        residual = x + residual
        return F.rms_norm(residual, self.weight.shape, self.weight, eps=1e-6), residual


def get_inputs(tokens: int = 128, hidden: int = 768, dtype: str = "float32") -> list[torch.Tensor]:
    x = torch.randn(tokens, hidden, dtype=getattr(torch, dtype))
    residual = torch.randn(tokens, hidden, dtype=getattr(torch, dtype)) * 2
    return [x, residual]


def get_init_inputs(hidden: int = 768, dtype: str = "float32") -> list[object]:
    return [hidden, dtype]
