"""Add the residual stream, then RMS normalisation of the sum; the normalised values and the new
residual are returned. Serving engines run this twice per decoder layer."""

import torch

TASK = {
    "family": "normalisation",
    "workloads": {
        "small": {"tokens": 5, "hidden": 4099, "dtype": "float32"},
        "decode": {"tokens": 128, "hidden": 7168, "dtype": "bfloat16"},
        "prefill": {"tokens": 8192, "hidden": 4096, "dtype": "bfloat16"},
        "odd": {"tokens": 1531, "hidden": 5003, "dtype": "float16"},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, hidden: int, dtype: str) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(1 + 0.3 * torch.randn(hidden, dtype=getattr(torch, dtype)))

    def forward(self, x: torch.Tensor, residual: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # Sums and squares in single precision at least, as servers have it.
        total = (x + residual).to(torch.promote_types(x.dtype, torch.float32))
        inverse = torch.rsqrt(total.square().mean(dim=-1, keepdim=True) + 1e-6)
        return (total * inverse * self.weight).to(x.dtype), total.to(x.dtype)


def get_inputs(
    tokens: int = 128, hidden: int = 7168, dtype: str = "bfloat16"
) -> list[torch.Tensor]:
    x = torch.randn(tokens, hidden, dtype=getattr(torch, dtype))
    residual = torch.randn(tokens, hidden, dtype=getattr(torch, dtype)) * 2
    return [x, residual]


def get_init_inputs(hidden: int = 7168, dtype: str = "bfloat16") -> list[object]:
    return [hidden, dtype]
