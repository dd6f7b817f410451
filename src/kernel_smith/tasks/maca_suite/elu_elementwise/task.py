"""ELU: the identity above zero and exp(x) - 1 below, the activation between the layers of graph
attention networks, on the features of all nodes."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "activation",
    "workloads": {
        "small": {"nodes": 37, "features": 211},
        "large": {"nodes": 169343, "features": 128},
        "half": {"nodes": 131072, "features": 256, "dtype": "bfloat16"},
        "odd": {"nodes": 19717, "features": 331},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.elu(x)


def get_inputs(
    nodes: int = 169343, features: int = 128, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(nodes, features, dtype=getattr(torch, dtype)) * 1.5]
