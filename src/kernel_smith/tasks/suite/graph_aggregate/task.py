"""Each node sums the weighted features of its neighbours over a list of edges: message passing in a
graph neural network, or a sparse matrix product in coordinate form."""

import torch

TASK = {
    "family": "indexing",
    "workloads": {
        "graph": {"nodes": 1000, "edges": 4000, "features": 32},
        "odd": {"nodes": 613, "edges": 5003, "features": 19},
    },
}


class Model(torch.nn.Module):
    def forward(
        self, x: torch.Tensor, sources: torch.Tensor, targets: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        messages = x[sources] * weights[:, None]
        return torch.zeros_like(x).index_add(0, targets, messages)


def get_inputs(nodes: int = 1000, edges: int = 4000, features: int = 32) -> list[torch.Tensor]:
    x = torch.randn(nodes, features)
    sources = torch.randint(nodes, (edges,))
    # Squaring makes a few nodes popular, as in real graphs.
    targets = (torch.rand(edges).square() * nodes).long()
    return [x, sources, targets, torch.rand(edges) + 0.1]
