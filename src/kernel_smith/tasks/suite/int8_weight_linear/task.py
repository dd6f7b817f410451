"""A linear layer with int8 weights and one scale per group of inputs: weight-only quantisation, as
language models are served in little memory."""

import torch

TASK = {
    "family": "quantisation",
    "workloads": {
        "decode": {"tokens": 1, "features": 512, "hidden": 512, "group": 64},
        "prefill": {"tokens": 32, "features": 256, "hidden": 192, "group": 32},
        "odd": {"tokens": 7, "features": 297, "hidden": 211, "group": 33},
    },
}


class Model(torch.nn.Module):
    def __init__(self, features: int, hidden: int, group: int) -> None:
        super().__init__()
        weight = torch.randint(-127, 128, (hidden, features), dtype=torch.int8)
        self.register_buffer("weight", weight)
        self.register_buffer("scales", torch.rand(hidden, features // group) * 0.01 + 0.001)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        hidden, groups = self.scales.shape
        weight = self.weight.view(hidden, groups, -1) * self.scales[:, :, None]
        return x @ weight.view(hidden, -1).T


def get_inputs(
    tokens: int = 1, features: int = 512, hidden: int = 512, group: int = 64
) -> list[torch.Tensor]:
    return [torch.randn(tokens, features)]


def get_init_inputs(features: int = 512, hidden: int = 512, group: int = 64) -> list[int]:
    return [features, hidden, group]
