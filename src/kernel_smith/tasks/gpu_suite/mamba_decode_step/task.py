"""One decoding step of a selective state-space layer: every state decays, takes in the new token
and is read out; output and new states are returned. Mamba servers run it per layer and token."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "scan",
    "workloads": {
        "small": {"batch": 2, "channels": 300, "states": 16},
        "decode": {"batch": 128, "channels": 8192, "states": 16},
        "mamba2": {"batch": 32, "channels": 4096, "states": 128},
        "odd": {"batch": 37, "channels": 5121, "states": 15},
    },
}


class Model(torch.nn.Module):
    def __init__(self, channels: int, states: int) -> None:
        super().__init__()
        self.rates = torch.nn.Parameter(-torch.rand(channels, states) - 0.1)
        self.skip = torch.nn.Parameter(torch.randn(channels))
        self.step_bias = torch.nn.Parameter(torch.randn(channels))

    def forward(
        self,
        state: torch.Tensor,
        x: torch.Tensor,
        step: torch.Tensor,
        write: torch.Tensor,
        read: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        step = F.softplus(step + self.step_bias)[..., None]
        new_state = state * (step * self.rates).exp() + step * write[:, None] * x[..., None]
        output = (new_state * read[:, None]).sum(dim=-1) + self.skip * x
        return output, new_state


def get_inputs(batch: int = 128, channels: int = 8192, states: int = 16) -> list[torch.Tensor]:
    state = torch.randn(batch, channels, states)
    x, step = torch.randn(batch, channels), torch.randn(batch, channels)
    write, read = torch.randn(batch, states), torch.randn(batch, states)
    return [state, x, step, write, read]


def get_init_inputs(channels: int = 8192, states: int = 16) -> list[int]:
    return [channels, states]
