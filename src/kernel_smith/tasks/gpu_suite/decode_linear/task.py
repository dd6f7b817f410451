"""A linear layer on the few tokens of a decoding step: reading the weights is all the work."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "matmul",
    "precision": "tf32",
    "workloads": {
        "small": {"tokens": 3, "inputs": 500, "outputs": 301},
        "single": {"tokens": 1, "inputs": 4096, "outputs": 14336, "dtype": "bfloat16"},
        "batch": {"tokens": 16, "inputs": 7168, "outputs": 4096, "dtype": "bfloat16"},
        "odd": {"tokens": 7, "inputs": 5000, "outputs": 9999, "dtype": "float16"},
    },
}


class Model(torch.nn.Module):
    def __init__(self, inputs: int, outputs: int, dtype: str) -> None:
        super().__init__()
        weight = torch.randn(outputs, inputs, dtype=getattr(torch, dtype)) * inputs**-0.5
        self.weight = torch.nn.Parameter(weight)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x, self.weight)


def get_inputs(
    tokens: int = 1, inputs: int = 4096, outputs: int = 14336, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(tokens, inputs, dtype=getattr(torch, dtype))]


def get_init_inputs(
    inputs: int = 4096, outputs: int = 14336, dtype: str = "float32"
) -> list[object]:
    return [inputs, outputs, dtype]
