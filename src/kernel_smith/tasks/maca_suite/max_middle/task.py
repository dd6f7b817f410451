"""Maximum over the middle of three dimensions: the global feature of a point cloud, as in PointNet,
or max pooling over time."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"batch": 4, "length": 71, "features": 139},
        "large": {"batch": 32, "length": 1024, "features": 1024},
        "half": {"batch": 32, "length": 2048, "features": 1024, "dtype": "bfloat16"},
        "odd": {"batch": 31, "length": 1021, "features": 515},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.amax(dim=1)


def get_inputs(
    batch: int = 32, length: int = 1024, features: int = 1024, dtype: str = "float32"
) -> list[torch.Tensor]:
    # Each result has its own centre; otherwise all of them would be nearly the same.
    centre = torch.randn(batch, 1, features)
    return [(torch.randn(batch, length, features) + centre).to(getattr(torch, dtype))]
