"""Rows divided by the sum of their absolute values: descriptors before the square root of
RootSIFT, and the weights of routers and mixtures."""

import torch

TASK = {
    "family": "norm",
    "workloads": {
        "small": {"rows": 39, "columns": 301},
        "large": {"rows": 32768, "columns": 512},
        "half": {"rows": 65536, "columns": 512, "dtype": "bfloat16"},
        "odd": {"rows": 4099, "columns": 777},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # In single precision at least: the norm of a row of halves may be beyond their range.
        wide = torch.promote_types(x.dtype, torch.float32)
        norm = torch.linalg.vector_norm(x, ord=1, dim=-1, keepdim=True, dtype=wide)
        return (x / norm.clamp_min(1e-12)).to(x.dtype)


def get_inputs(rows: int = 32768, columns: int = 512, dtype: str = "float32") -> list[torch.Tensor]:
    return [torch.randn(rows, columns, dtype=getattr(torch, dtype)) * 3]
