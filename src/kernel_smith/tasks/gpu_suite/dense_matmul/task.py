"""The product of two large matrices in the precisions that training and prefill use."""

import torch

TASK = {
    "family": "matmul",
    "precision": "tf32",
    "workloads": {
        "small": {"rows": 65, "inner": 130, "columns": 67},
        "bfloat16": {"rows": 4096, "inner": 4096, "columns": 4096, "dtype": "bfloat16"},
        "float32": {"rows": 2048, "inner": 4096, "columns": 2048},
        "odd": {"rows": 2047, "inner": 4095, "columns": 3001, "dtype": "float16"},
    },
}


class Model(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return a @ b


def get_inputs(
    rows: int = 4096, inner: int = 4096, columns: int = 4096, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    # Scaled so that the product has unit size, which half precision can hold.
    a = torch.randn(rows, inner, dtype=kind)
    return [a, torch.randn(inner, columns, dtype=kind) * inner**-0.5]
