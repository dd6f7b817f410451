"""Euclidean norm of each row: per-sample gradient norms for private training, or the lengths of
embeddings before a cosine similarity."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"rows": 61, "columns": 769},
        "large": {"rows": 16384, "columns": 1024},
        "half": {"rows": 65536, "columns": 1024, "dtype": "float16"},
        "odd": {"rows": 7993, "columns": 1531},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.linalg.vector_norm(x, dim=-1)


def get_inputs(
    rows: int = 16384, columns: int = 1024, dtype: str = "float32"
) -> list[torch.Tensor]:
    # Each row has its own centre and spread; otherwise all results would be nearly the same.
    spread = torch.rand(rows, 1) * 2 + 0.5
    centre = torch.randn(rows, 1)
    return [(torch.randn(rows, columns) * spread + centre).to(getattr(torch, dtype))]
