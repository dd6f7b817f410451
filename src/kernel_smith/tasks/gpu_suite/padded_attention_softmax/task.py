"""Softmax of scaled attention scores where each sequence of the batch has its own number of valid
keys; the rest gets no weight. Encoders compute this on padded batches."""

import torch

TASK = {
    "family": "softmax",
    "workloads": {
        "small": {"batch": 2, "heads": 3, "queries": 77, "keys": 77},
        "encoder": {
            "batch": 32,
            "heads": 16,
            "queries": 512,
            "keys": 512,
            "dtype": "float16",
        },
        "odd": {"batch": 4, "heads": 12, "queries": 1025, "keys": 1031},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, scale: float) -> None:
        super().__init__()
        self.scale = scale

    def forward(self, scores: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        keys = torch.arange(scores.shape[-1], device=scores.device)
        padding = keys >= lengths[:, None, None, None]
        wide = scores.to(torch.promote_types(scores.dtype, torch.float32)) * self.scale
        weights = torch.softmax(wide.masked_fill(padding, float("-inf")), dim=-1)
        return weights.to(scores.dtype)


def get_inputs(
    batch: int = 32, heads: int = 16, queries: int = 512, keys: int = 512, dtype: str = "float32"
) -> list[torch.Tensor]:
    scores = torch.randn(batch, heads, queries, keys, dtype=getattr(torch, dtype)) * 8
    return [scores, torch.randint(keys // 2, keys + 1, (batch,))]


def get_init_inputs() -> list[float]:
    return [0.125]
