"""One encoder layer of a vision transformer: normalisation, attention, residual, normalisation,
GELU feed-forward, residual."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "network",
    "precision": "tf32",
    "workloads": {
        "small": {"batch": 1, "length": 37, "hidden": 96, "heads": 3},
        "vit_large": {
            "batch": 32,
            "length": 197,
            "hidden": 1024,
            "heads": 16,
            "dtype": "float16",
        },
        "encoder": {"batch": 4, "length": 1024, "hidden": 1024, "heads": 16, "dtype": "bfloat16"},
        "odd": {"batch": 3, "length": 577, "hidden": 612, "heads": 9},
    },
}


class Model(torch.nn.Module):
    def __init__(self, hidden: int, heads: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        self.heads = heads
        self.norm1 = torch.nn.LayerNorm(hidden, dtype=kind)
        self.norm2 = torch.nn.LayerNorm(hidden, dtype=kind)
        self.qkv = torch.nn.Linear(hidden, 3 * hidden, dtype=kind)
        self.out = torch.nn.Linear(hidden, hidden, dtype=kind)
        self.up = torch.nn.Linear(hidden, 4 * hidden, dtype=kind)
        self.down = torch.nn.Linear(4 * hidden, hidden, dtype=kind)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        qkv = self.qkv(self.norm1(x)).unflatten(-1, (3, self.heads, -1))
        query, key, value = qkv.permute(2, 0, 3, 1, 4)
        # Sharper than usual, as in a trained layer: fresh weights attend to everything alike.
        attended = F.scaled_dot_product_attention(query * 4, key, value)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


def get_inputs(
    batch: int = 32, length: int = 197, hidden: int = 1024, heads: int = 16, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(batch, length, hidden, dtype=getattr(torch, dtype))]


def get_init_inputs(hidden: int = 1024, heads: int = 16, dtype: str = "float32") -> list[object]:
    return [hidden, heads, dtype]
