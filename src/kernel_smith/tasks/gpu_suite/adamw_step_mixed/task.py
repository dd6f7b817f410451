"""One AdamW step of mixed-precision training: master weights and moments in single precision, the
gradient in bfloat16; new weights, moments and the bfloat16 copy of the weights are returned."""

import torch

TASK = {
    "family": "optimiser",
    "workloads": {
        "small": {"count": 30011, "step": 10},
        "layer": {"count": 16777216, "step": 1000},
        "odd": {"count": 9999991, "step": 3},
    },
    # Without "ties": second moments rounded to zero turn the step into a division by epsilon.
    "variants": ["large", "small", "spikes", "sorted"],
}


class Model(torch.nn.Module):
    def __init__(self, rate: float, decay: float, beta1: float, beta2: float) -> None:
        super().__init__()
        self.rate, self.decay = rate, decay
        self.beta1, self.beta2 = beta1, beta2

    def forward(
        self,
        weights: torch.Tensor,
        gradient: torch.Tensor,
        first: torch.Tensor,
        second: torch.Tensor,
        step: int,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        wide = gradient.to(weights.dtype)
        first = self.beta1 * first + (1 - self.beta1) * wide
        second = self.beta2 * second + (1 - self.beta2) * wide.square()
        direction = first / (1 - self.beta1**step)
        size = (second / (1 - self.beta2**step)).sqrt() + 1e-8
        weights = weights * (1 - self.rate * self.decay) - self.rate * direction / size
        return weights, first, second, weights.to(gradient.dtype)


def get_inputs(count: int = 16777216, step: int = 1000) -> list[object]:
    weights = torch.randn(count) * 0.05
    gradient = torch.randn(count, dtype=torch.bfloat16) * 0.1
    first = torch.randn(count) * 0.05
    second = torch.rand(count) * 0.01 + 0.0005
    return [weights, gradient, first, second, step]


def get_init_inputs() -> list[float]:
    return [0.01, 0.1, 0.9, 0.95]
