"""Quantise activations to int8 with one scale per token, before the int8 products of W8A8 serving:
the largest magnitude of a row becomes 127. Integers and scales are returned."""

import torch

TASK = {
    "family": "quantisation",
    "workloads": {
        "small": {"tokens": 9, "hidden": 1003},
        "decode": {"tokens": 64, "hidden": 8192, "dtype": "float16"},
        "prefill": {"tokens": 8192, "hidden": 4096, "dtype": "bfloat16"},
        "odd": {"tokens": 1021, "hidden": 5003},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        wide = x.float()
        largest = wide.abs().amax(dim=-1, keepdim=True).clamp(min=1e-10)
        scaled = wide * (127 / largest)
        nearest = torch.trunc(scaled + torch.copysign(torch.full_like(scaled, 0.5), scaled))
        return nearest.to(torch.int8), largest / 127


def get_inputs(tokens: int = 64, hidden: int = 8192, dtype: str = "float32") -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    magnitude = torch.rand(tokens, 1, dtype=kind) * 4 + 0.1
    return [torch.randn(tokens, hidden, dtype=kind) * magnitude]
