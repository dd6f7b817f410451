"""A matrix divided by its Frobenius norm: the first step of Muon's orthogonalisation, which needs
singular values of at most one."""

import torch

TASK = {
    "family": "norm",
    "workloads": {
        "small": {"rows": 61, "columns": 203},
        "large": {"rows": 4096, "columns": 4096},
        "half": {"rows": 8192, "columns": 4096, "dtype": "bfloat16"},
        "odd": {"rows": 2039, "columns": 4093},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # In single precision at least: sums of millions of squares exceed the digits of halves.
        wide = torch.promote_types(x.dtype, torch.float32)
        norm = torch.linalg.vector_norm(x, dtype=wide)
        return (x / (norm + 1e-7)).to(x.dtype)


def get_inputs(rows: int = 4096, columns: int = 4096, dtype: str = "float32") -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=getattr(torch, dtype)) * 0.5]
