"""Layer normalisation of image tokens, with weight and bias: twice per layer of a vision
transformer. 197 and 577 tokens per image make the row counts awkward."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "normalisation",
    "workloads": {
        "small": {"images": 1, "tokens": 197, "hidden": 768, "dtype": "float32"},
        "large": {"images": 128, "tokens": 197, "hidden": 1024, "dtype": "float16"},
        "huge": {"images": 64, "tokens": 577, "hidden": 1280, "dtype": "bfloat16"},
        "odd": {"images": 63, "tokens": 577, "hidden": 1411, "dtype": "float32"},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, hidden: int, dtype: str) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(hidden, dtype=getattr(torch, dtype)))
        self.bias = torch.nn.Parameter(torch.randn(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(x, self.weight.shape, self.weight, self.bias, eps=1e-6)


def get_inputs(
    images: int = 128, tokens: int = 197, hidden: int = 1024, dtype: str = "float16"
) -> list[torch.Tensor]:
    centre = torch.randn(images, tokens, 1, dtype=getattr(torch, dtype))
    return [torch.randn(images, tokens, hidden, dtype=getattr(torch, dtype)) * 2 + centre]


def get_init_inputs(hidden: int = 1024, dtype: str = "float16") -> list[object]:
    return [hidden, dtype]
