"""Gated linear recurrence h[t] = a[t] * h[t-1] + (1 - a[t]) * x[t] with a = sigmoid(gate); every
state is returned. It is the core of minGRU and of state-space layers."""

import torch

TASK = {
    "family": "scan",
    "workloads": {
        "sequence": {"batch": 2, "length": 96, "channels": 256},
        "odd": {"batch": 3, "length": 77, "channels": 111},
    },
}


class Model(torch.nn.Module):
    def forward(self, gate: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        keep = torch.sigmoid(gate)
        fresh = (1 - keep) * x
        state = torch.zeros_like(x[:, 0])
        states = []
        for step in range(x.shape[1]):
            state = keep[:, step] * state + fresh[:, step]
            states.append(state)
        return torch.stack(states, dim=1)


def get_inputs(batch: int = 2, length: int = 96, channels: int = 256) -> list[torch.Tensor]:
    gate = torch.randn(batch, length, channels) * 2 + 1
    return [gate, torch.randn(batch, length, channels)]
