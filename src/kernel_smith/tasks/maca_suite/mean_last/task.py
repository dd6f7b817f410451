"""Mean of each row: global average pooling, where a row holds the pixels of one channel."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"rows": 53, "columns": 785},
        "large": {"rows": 16384, "columns": 784},
        "half": {"rows": 65536, "columns": 784, "dtype": "float16"},
        "odd": {"rows": 9973, "columns": 1021},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(dim=-1)


def get_inputs(rows: int = 16384, columns: int = 784, dtype: str = "float32") -> list[torch.Tensor]:
    # Each row has its own centre and spread; otherwise all results would be nearly the same.
    spread = torch.rand(rows, 1) * 2 + 0.5
    centre = torch.randn(rows, 1)
    return [(torch.randn(rows, columns) * spread + centre).to(getattr(torch, dtype))]
