"""Sum over the middle of three dimensions: sum pooling of token or node vectors, as in bags of
words and deep sets."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"batch": 5, "length": 67, "features": 131},
        "large": {"batch": 64, "length": 512, "features": 512},
        "half": {"batch": 64, "length": 1024, "features": 1024, "dtype": "float16"},
        "odd": {"batch": 37, "length": 509, "features": 771},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sum(dim=1)


def get_inputs(
    batch: int = 64, length: int = 512, features: int = 512, dtype: str = "float32"
) -> list[torch.Tensor]:
    # Each result has its own centre; otherwise all of them would be nearly the same.
    centre = torch.randn(batch, 1, features)
    return [(torch.randn(batch, length, features) + centre).to(getattr(torch, dtype))]
