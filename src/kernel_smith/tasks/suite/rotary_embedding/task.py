"""Rotary position embedding of queries and keys: the two halves of each head's features are turned
by an angle that depends on the position, as in Llama."""

import torch

TASK = {
    "family": "positional",
    "workloads": {
        "prefill": {"tokens": 128, "query_heads": 8, "key_heads": 4, "features": 64},
        "odd": {"tokens": 91, "query_heads": 7, "key_heads": 1, "features": 74},
        "bfloat16": {
            "tokens": 64,
            "query_heads": 8,
            "key_heads": 2,
            "features": 64,
            "dtype": "bfloat16",
        },
    },
}


class Model(torch.nn.Module):
    def forward(
        self, query: torch.Tensor, key: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        return self.turn(query, cosine, sine), self.turn(key, cosine, sine)

    def turn(self, x: torch.Tensor, cosine: torch.Tensor, sine: torch.Tensor) -> torch.Tensor:
        first, second = x.chunk(2, dim=-1)
        cosine, sine = cosine[:, None, :], sine[:, None, :]
        return torch.cat([first * cosine - second * sine, second * cosine + first * sine], dim=-1)


def get_inputs(
    tokens: int = 128,
    query_heads: int = 8,
    key_heads: int = 4,
    features: int = 64,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    query = torch.randn(tokens, query_heads, features, dtype=kind)
    key = torch.randn(tokens, key_heads, features, dtype=kind)
    # A chunk of a longer text: positions count up from a random start.
    positions = torch.arange(tokens) + torch.randint(4096, (1,))
    speeds = 10000.0 ** (-torch.arange(features // 2) * 2 / features)
    angles = positions[:, None] * speeds
    return [query, key, angles.cos().to(kind), angles.sin().to(kind)]
