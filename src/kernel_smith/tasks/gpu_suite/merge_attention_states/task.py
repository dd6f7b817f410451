"""Combine partial attention results over parts of the keys by their log sums of exponentials: the
second half of split-KV decoding and of cascade attention in FlashInfer."""

import torch

TASK = {
    "family": "attention",
    "workloads": {
        "small": {"parts": 3, "tokens": 5, "heads": 7, "features": 72},
        "decode": {"parts": 16, "tokens": 64, "heads": 32, "features": 128},
        "cascade": {
            "parts": 2,
            "tokens": 8192,
            "heads": 32,
            "features": 128,
            "dtype": "bfloat16",
        },
        "odd": {"parts": 11, "tokens": 301, "heads": 28, "features": 100},
    },
}


class Model(torch.nn.Module):
    def forward(
        self, values: torch.Tensor, log_sums: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        total = torch.logsumexp(log_sums, dim=0)
        weights = (log_sums - total).exp()[..., None]
        merged = (values * weights).sum(dim=0).to(values.dtype)
        return merged, total


def get_inputs(
    parts: int = 16, tokens: int = 64, heads: int = 32, features: int = 128, dtype: str = "float32"
) -> list[torch.Tensor]:
    values = torch.randn(parts, tokens, heads, features, dtype=getattr(torch, dtype))
    return [values, torch.randn(parts, tokens, heads) * 2 + 5]
