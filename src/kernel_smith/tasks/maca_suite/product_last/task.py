"""Product of each row, of values near 1: the importance weight of a sequence from the probability
ratios of its tokens, in off-policy learning."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"rows": 47, "columns": 1013},
        "large": {"rows": 8192, "columns": 2048},
        "half": {"rows": 131072, "columns": 128, "dtype": "float16"},
        "odd": {"rows": 6007, "columns": 1511},
    },
    # Only what leaves the values near 1: other products overflow or vanish.
    "variants": ["spikes", "sorted"],
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        return x.to(wide).prod(dim=-1).to(x.dtype)


def get_inputs(rows: int = 8192, columns: int = 2048, dtype: str = "float32") -> list[torch.Tensor]:
    # The longer a row, the nearer its values are to 1; in half precision rows must be short, since
    # the rounding of many factors would decide the product.
    ratios = 1 + 0.5 * columns**-0.5 * torch.randn(rows, columns)
    return [ratios.to(getattr(torch, dtype))]
