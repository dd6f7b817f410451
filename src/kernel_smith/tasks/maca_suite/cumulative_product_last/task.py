"""Running product along short rows of values near 1: how much light is left after each sample of a
ray, in volume rendering."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"rows": 131, "columns": 193},
        "large": {"rows": 65536, "columns": 128},
        "half": {"rows": 131072, "columns": 192, "dtype": "float16"},
        "odd": {"rows": 30011, "columns": 157},
    },
    # Only what leaves the values near 1: other products overflow or vanish.
    "variants": ["sorted"],
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        return wide.cumprod(dim=-1).to(x.dtype)


def get_inputs(rows: int = 65536, columns: int = 128, dtype: str = "float32") -> list[torch.Tensor]:
    # Rays that cross more or less dense matter.
    density = torch.rand(rows, 1) * 0.05
    return [(1 - density * torch.rand(rows, columns)).to(getattr(torch, dtype))]
