"""The largest magnitude of each channel over all tokens: the calibration pass of SmoothQuant and of
static quantisation."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"tokens": 100, "channels": 1025},
        "calibration": {"tokens": 16384, "channels": 4096, "dtype": "bfloat16"},
        "wide": {"tokens": 512, "channels": 28672, "dtype": "float16"},
        "odd": {"tokens": 4099, "channels": 7169},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.abs().amax(dim=0)


def get_inputs(
    tokens: int = 16384, channels: int = 4096, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    magnitude = torch.rand(channels, dtype=kind) * 3 + 0.1
    return [torch.randn(tokens, channels, dtype=kind) * magnitude]
