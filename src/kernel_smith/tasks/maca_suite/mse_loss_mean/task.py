"""Mean squared error in single precision: the loss of regression, autoencoders and diffusion
models."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "loss",
    "workloads": {
        "small": {"rows": 33, "columns": 811},
        "large": {"rows": 2048, "columns": 4096},
        "half": {"rows": 4096, "columns": 8192, "dtype": "bfloat16"},
        "odd": {"rows": 1999, "columns": 3001},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        return F.mse_loss(x.to(wide), target.to(wide))


def get_inputs(rows: int = 2048, columns: int = 4096, dtype: str = "float32") -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    target = torch.randn(rows, columns)
    # Sometimes good predictions, sometimes bad ones: the loss must not be known beforehand.
    error = torch.randn(rows, columns) * 10 ** (torch.rand(()) * 2 - 1)
    return [(target + error).to(kind), target.to(kind)]
