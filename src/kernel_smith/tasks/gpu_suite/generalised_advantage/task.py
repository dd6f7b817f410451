"""Generalised advantage estimates and returns from rewards, values and episode ends, backwards in
time: the first step of every PPO update."""

import torch

TASK = {
    "family": "scan",
    "workloads": {
        "small": {"steps": 37, "environments": 101},
        "simulation": {"steps": 128, "environments": 16384},
        "text": {"steps": 1024, "environments": 512},
        "odd": {"steps": 257, "environments": 4095},
    },
}


class Model(torch.nn.Module):
    def __init__(self, discount: float, smoothing: float) -> None:
        super().__init__()
        self.discount, self.smoothing = discount, smoothing

    def forward(
        self, rewards: torch.Tensor, values: torch.Tensor, ends: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        going_on = (~ends).to(rewards.dtype)
        surprise = rewards + self.discount * values[1:] * going_on - values[:-1]
        advantage = torch.zeros_like(rewards[0])
        advantages = []
        for step in reversed(range(rewards.shape[0])):
            decay = self.discount * self.smoothing * going_on[step]
            advantage = surprise[step] + decay * advantage
            advantages.append(advantage)
        stacked = torch.stack(advantages[::-1])
        return stacked, stacked + values[:-1]


def get_inputs(steps: int = 128, environments: int = 16384) -> list[torch.Tensor]:
    rewards = torch.randn(steps, environments)
    values = torch.randn(steps + 1, environments) * 2
    return [rewards, values, torch.rand(steps, environments) < 0.02]


def get_init_inputs() -> list[float]:
    return [0.99, 0.95]
