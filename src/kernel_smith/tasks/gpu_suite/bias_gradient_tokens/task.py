"""Sum of the output gradients over all tokens, in single precision: the gradient of a linear
layer's bias in mixed-precision training."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"tokens": 130, "columns": 1001},
        "training": {"tokens": 16384, "columns": 4096, "dtype": "bfloat16"},
        "narrow": {"tokens": 262144, "columns": 96, "dtype": "float16"},
        "odd": {"tokens": 8191, "columns": 3073},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, gradient: torch.Tensor) -> torch.Tensor:
        return gradient.sum(dim=0, dtype=torch.promote_types(gradient.dtype, torch.float32))


def get_inputs(
    tokens: int = 16384, columns: int = 4096, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(tokens, columns, dtype=getattr(torch, dtype))]
