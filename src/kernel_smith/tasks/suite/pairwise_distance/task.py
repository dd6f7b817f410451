"""Euclidean distance between every query and every point, as in nearest neighbours and
clustering."""

import torch

TASK = {
    "family": "distance",
    "workloads": {
        "points": {"queries": 128, "points": 256, "dimensions": 32},
        "odd": {"queries": 91, "points": 313, "dimensions": 19},
        "space": {"queries": 256, "points": 512, "dimensions": 3},
    },
}


class Model(torch.nn.Module):
    def forward(self, queries: torch.Tensor, points: torch.Tensor) -> torch.Tensor:
        # Differences, not the product form, which cancels for points close together.
        return torch.cdist(queries, points, compute_mode="donot_use_mm_for_euclid_dist")


def get_inputs(queries: int = 128, points: int = 256, dimensions: int = 32) -> list[torch.Tensor]:
    # Queries lie near some of the points, so that distances range from small to large.
    cloud = torch.randn(points, dimensions) * (torch.rand(points, 1) * 2 + 0.1)
    near = cloud[torch.randint(points, (queries,))] + 0.1 * torch.randn(queries, dimensions)
    return [near, cloud]
