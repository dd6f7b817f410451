"""How many elements of each row are not zero: the sparsity of activations, or the row lengths of a
compressed sparse matrix."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"rows": 33, "columns": 1021},
        "large": {"rows": 4096, "columns": 4096},
        "half": {"rows": 8192, "columns": 8192, "dtype": "float16"},
        "odd": {"rows": 3011, "columns": 4999},
    },
    # Without "large" and "spikes", which leave the zeros where they are.
    "variants": ["small", "sorted", "ties"],
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.count_nonzero(x, dim=-1)


def get_inputs(rows: int = 4096, columns: int = 4096, dtype: str = "float32") -> list[torch.Tensor]:
    density = torch.rand(rows, 1)
    # Some of the zeros are negative.
    sparse = torch.randn(rows, columns) * (torch.rand(rows, columns) < density)
    return [sparse.to(getattr(torch, dtype))]
