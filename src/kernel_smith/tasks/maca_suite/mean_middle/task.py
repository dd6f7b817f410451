"""Mean over the middle of three dimensions: mean pooling of token vectors."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"batch": 3, "length": 83, "features": 149},
        "large": {"batch": 64, "length": 512, "features": 768},
        "half": {"batch": 128, "length": 512, "features": 1024, "dtype": "bfloat16"},
        "odd": {"batch": 29, "length": 517, "features": 1023},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.mean(dim=1)


def get_inputs(
    batch: int = 64, length: int = 512, features: int = 768, dtype: str = "float32"
) -> list[torch.Tensor]:
    # Each result has its own centre; otherwise all of them would be nearly the same.
    centre = torch.randn(batch, 1, features)
    return [(torch.randn(batch, length, features) + centre).to(getattr(torch, dtype))]
