"""Rotary embedding of the last 64 features of each query head, neighbours rotated against each
other, the rest passed through, as in DeepSeek's latent attention and GPT-J."""

import torch

TASK = {
    "family": "positional",
    "workloads": {
        "small": {"tokens": 11, "heads": 5, "plain": 33, "rotary": 16},
        "decode": {"tokens": 128, "heads": 128, "plain": 128, "rotary": 64, "dtype": "bfloat16"},
        "prefill": {"tokens": 4096, "heads": 64, "plain": 128, "rotary": 64, "dtype": "bfloat16"},
        "odd": {"tokens": 2003, "heads": 19, "plain": 101, "rotary": 66},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, rotary: int) -> None:
        super().__init__()
        self.rotary = rotary

    def forward(
        self, query: torch.Tensor, cosines: torch.Tensor, sines: torch.Tensor
    ) -> torch.Tensor:
        plain, turning = query.split([query.shape[-1] - self.rotary, self.rotary], dim=-1)
        pairs = turning.to(torch.promote_types(query.dtype, torch.float32)).unflatten(-1, (-1, 2))
        even, odd = pairs.unbind(dim=-1)
        cosines, sines = cosines[:, None], sines[:, None]
        turned = torch.stack(
            [even * cosines - odd * sines, odd * cosines + even * sines], dim=-1
        ).flatten(-2)
        return torch.cat([plain, turned.to(query.dtype)], dim=-1)


def get_inputs(
    tokens: int = 128, heads: int = 128, plain: int = 128, rotary: int = 64, dtype: str = "float32"
) -> list[torch.Tensor]:
    query = torch.randn(tokens, heads, plain + rotary, dtype=getattr(torch, dtype))
    angles = torch.rand(tokens, rotary // 2) * 6.25
    return [query, angles.cos(), angles.sin()]


def get_init_inputs(rotary: int = 64) -> list[int]:
    return [rotary]
