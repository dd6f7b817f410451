"""An expensive function of each row; inputs take so long to draw that few are in stock."""

import time

import torch

TASK = {
    "family": "adversarial",
    "workloads": {"rows": {"rows": 64, "columns": 64}},
    "variants": ["small"],
}


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for _ in range(40):
            x = torch.softmax(x, dim=-1) + torch.tanh(x)
        return x


def get_inputs(rows: int = 64, columns: int = 64) -> list[torch.Tensor]:
    time.sleep(0.26)
    return [torch.randn(rows, columns)]
