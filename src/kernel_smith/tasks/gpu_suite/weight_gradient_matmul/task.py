"""Inputs transposed times output gradients, a product over all tokens: the weight gradient of a
linear layer, with a small result and a very long inner dimension."""

import torch

TASK = {
    "family": "matmul",
    "precision": "tf32",
    "workloads": {
        "small": {"tokens": 1500, "inputs": 33, "outputs": 50},
        "adapter": {"tokens": 65536, "inputs": 64, "outputs": 2048, "dtype": "bfloat16"},
        "layer": {"tokens": 16384, "inputs": 2048, "outputs": 2048, "dtype": "bfloat16"},
        "odd": {"tokens": 30001, "inputs": 129, "outputs": 1000},
    },
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        return x.T @ gradient


def get_inputs(
    tokens: int = 16384, inputs: int = 2048, outputs: int = 2048, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    x = torch.randn(tokens, inputs, dtype=kind)
    return [x, torch.randn(tokens, outputs, dtype=kind) * tokens**-0.5]
