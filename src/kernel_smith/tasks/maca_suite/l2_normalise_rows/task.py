"""Rows divided by their Euclidean norm: embeddings before a search by cosine similarity, and
queries and keys of attention that normalises them."""

import torch

TASK = {
    "family": "norm",
    "workloads": {
        "small": {"rows": 33, "columns": 387},
        "large": {"rows": 16384, "columns": 1024},
        "half": {"rows": 65536, "columns": 768, "dtype": "float16"},
        "odd": {"rows": 3001, "columns": 1411},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # In single precision at least: the norm of a row of halves may be beyond their range.
        wide = torch.promote_types(x.dtype, torch.float32)
        norm = torch.linalg.vector_norm(x, ord=2, dim=-1, keepdim=True, dtype=wide)
        return (x / norm.clamp_min(1e-12)).to(x.dtype)


def get_inputs(
    rows: int = 16384, columns: int = 1024, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=getattr(torch, dtype)) * 3]
