"""One AdamW step over a flat tensor: new parameters and both moments from the gradient. Training
frameworks fuse this update."""

import torch

TASK = {
    "family": "optimiser",
    "workloads": {
        "layer": {"count": 65536, "step": 10},
        "odd": {"count": 30011, "step": 1000},
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
        parameters: torch.Tensor,
        gradient: torch.Tensor,
        first: torch.Tensor,
        second: torch.Tensor,
        step: int,
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        first = self.beta1 * first + (1 - self.beta1) * gradient
        second = self.beta2 * second + (1 - self.beta2) * gradient.square()
        direction = first / (1 - self.beta1**step)
        size = (second / (1 - self.beta2**step)).sqrt() + 1e-8
        parameters = parameters * (1 - self.rate * self.decay) - self.rate * direction / size
        return parameters, first, second


def get_inputs(count: int = 65536, step: int = 10) -> list[object]:
    parameters = torch.randn(count) * 0.05
    gradient = torch.randn(count) * 0.1
    first = torch.randn(count) * 0.05
    second = torch.rand(count) * 0.01 + 0.0005
    return [parameters, gradient, first, second, step]


def get_init_inputs() -> list[float]:
    return [0.01, 0.1, 0.9, 0.999]
