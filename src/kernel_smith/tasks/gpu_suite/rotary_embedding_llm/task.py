"""Rotary position embedding of queries and keys, halves rotated against each other, cosines and
sines looked up by position: every layer of Llama, Qwen and Mistral."""

import torch

TASK = {
    "family": "positional",
    "workloads": {
        "small": {"tokens": 9, "query_heads": 5, "key_heads": 2, "features": 40},
        "decode": {
            "tokens": 256,
            "query_heads": 32,
            "key_heads": 8,
            "features": 128,
            "dtype": "bfloat16",
        },
        "prefill": {
            "tokens": 8192,
            "query_heads": 32,
            "key_heads": 8,
            "features": 128,
            "dtype": "bfloat16",
        },
        "odd": {"tokens": 3001, "query_heads": 21, "key_heads": 3, "features": 72},
    },
    "library_calls": False,
}

POSITIONS = 4096


class Model(torch.nn.Module):
    def __init__(self, features: int, dtype: str) -> None:
        super().__init__()
        frequencies = 10000.0 ** -(torch.arange(0, features, 2, dtype=torch.float64) / features)
        angles = torch.arange(POSITIONS, dtype=torch.float64)[:, None] * frequencies
        self.register_buffer("cosines", angles.cos().to(getattr(torch, dtype)))
        self.register_buffer("sines", angles.sin().to(getattr(torch, dtype)))

    def forward(
        self, query: torch.Tensor, key: torch.Tensor, positions: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        wide = torch.promote_types(query.dtype, torch.float32)
        cosines = self.cosines[positions][:, None].to(wide)
        sines = self.sines[positions][:, None].to(wide)

        def rotated(x: torch.Tensor) -> torch.Tensor:
            low, high = x.to(wide).chunk(2, dim=-1)
            turned = [low * cosines - high * sines, high * cosines + low * sines]
            return torch.cat(turned, dim=-1).to(x.dtype)

        return rotated(query), rotated(key)


def get_inputs(
    tokens: int = 256,
    query_heads: int = 32,
    key_heads: int = 8,
    features: int = 128,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    query = torch.randn(tokens, query_heads, features, dtype=kind)
    key = torch.randn(tokens, key_heads, features, dtype=kind)
    return [query, key, torch.randint(POSITIONS, (tokens,))]


def get_init_inputs(features: int = 128, dtype: str = "float32") -> list[object]:
    return [features, dtype]
