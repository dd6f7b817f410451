"""Mean hinge loss of scores against targets of -1 and +1, in single precision: support vector
machines, and the discriminator of many generative adversarial networks."""

import torch

TASK = {
    "family": "loss",
    "workloads": {
        "small": {"rows": 41, "columns": 701},
        "large": {"rows": 4096, "columns": 2048},
        "half": {"rows": 8192, "columns": 4096, "dtype": "float16"},
        "odd": {"rows": 3001, "columns": 2003},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        return torch.clamp(1 - x.to(wide) * target.to(wide), min=0).mean()


def get_inputs(rows: int = 4096, columns: int = 2048, dtype: str = "float32") -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    # Sometimes sure scores, sometimes unsure ones: the loss must not be known beforehand.
    scores = torch.randn(rows, columns) * 10 ** (torch.rand(()) * 2 - 1)
    target = torch.randint(2, (rows, columns)) * 2 - 1
    return [scores.to(kind), target.to(kind)]
