"""Scale, causal mask and softmax of attention scores. With more keys than queries the queries are
the last ones, as in chunked prefill."""

import torch

TASK = {
    "family": "softmax",
    "workloads": {
        "square": {"heads": 8, "queries": 128, "keys": 128},
        "odd": {"heads": 3, "queries": 97, "keys": 97},
        "chunk": {"heads": 4, "queries": 48, "keys": 300},
    },
}


class Model(torch.nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, scores: torch.Tensor) -> torch.Tensor:
        queries, keys = scores.shape[-2:]
        visible = torch.ones(queries, keys, dtype=torch.bool).tril(keys - queries)
        return torch.softmax((scores * self.scale).masked_fill(~visible, float("-inf")), dim=-1)


def get_inputs(heads: int = 8, queries: int = 128, keys: int = 128) -> list[torch.Tensor]:
    return [torch.randn(heads, queries, keys) * 12]


def get_init_inputs() -> list[float]:
    return [0.125]
