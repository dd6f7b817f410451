"""The gradient of RMS normalisation with respect to its input, from the input, the weight and the
gradient of the output: the backward pass of training a Llama-style model."""

import torch

TASK = {
    "family": "normalisation",
    "workloads": {
        "small": {"tokens": 9, "hidden": 2050},
        "training": {"tokens": 8192, "hidden": 4096, "dtype": "bfloat16"},
        "odd": {"tokens": 2500, "hidden": 7167},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, hidden: int, dtype: str) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x: torch.Tensor, gradient: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        inverse = torch.rsqrt(x.to(wide).square().mean(dim=-1, keepdim=True) + 1e-6)
        normed = x.to(wide) * inverse
        weighted = gradient.to(wide) * self.weight
        along = (weighted * normed).mean(dim=-1, keepdim=True)
        return ((weighted - normed * along) * inverse).to(x.dtype)


def get_inputs(
    tokens: int = 8192, hidden: int = 4096, dtype: str = "float32"
) -> list[torch.Tensor]:
    x = torch.randn(tokens, hidden, dtype=getattr(torch, dtype))
    # A gradient with a part along the input, or the correction would vanish in the noise.
    gradient = torch.randn(tokens, hidden, dtype=getattr(torch, dtype)) + x
    return [x, gradient]


def get_init_inputs(hidden: int = 4096, dtype: str = "float32") -> list[object]:
    return [hidden, dtype]
