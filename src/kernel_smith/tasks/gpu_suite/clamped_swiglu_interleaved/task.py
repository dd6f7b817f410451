"""The gated activation of gpt-oss: gate and up values alternate along a row, both are clamped, and
the gate passes through a sigmoid with a factor."""

import torch

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"tokens": 17, "intermediate": 1111, "dtype": "float32"},
        "decode": {"tokens": 256, "intermediate": 2880, "dtype": "bfloat16"},
        "prefill": {"tokens": 16384, "intermediate": 2880, "dtype": "bfloat16"},
        "odd": {"tokens": 4001, "intermediate": 2881, "dtype": "float32"},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, factor: float, limit: float) -> None:
        super().__init__()
        self.factor, self.limit = factor, limit

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate = x[..., ::2].clamp(max=self.limit)
        up = x[..., 1::2].clamp(-self.limit, self.limit)
        return (up + 1) * gate * torch.sigmoid(self.factor * gate)


def get_inputs(
    tokens: int = 256, intermediate: int = 2880, dtype: str = "bfloat16"
) -> list[torch.Tensor]:
    # Wide enough that some values are clamped.
    return [torch.randn(tokens, 2 * intermediate, dtype=getattr(torch, dtype)) * 4]


def get_init_inputs() -> list[float]:
    return [1.702, 7.0]
