"""Scale the gradients of several layers so that their common norm does not exceed a limit; the
scaled gradients and the norm are returned. Nearly every training step of a model has it."""

import torch

TASK = {
    "family": "optimiser",
    "workloads": {
        "small": {"hidden": 101, "layers": 2},
        "layers": {"hidden": 2048, "layers": 4},
        "half": {"hidden": 4096, "layers": 3, "dtype": "bfloat16"},
        "odd": {"hidden": 1531, "layers": 5},
    },
}


class Model(torch.nn.Module):
    def __init__(self, limit: float) -> None:
        super().__init__()
        self.limit = limit

    def forward(self, gradients: list[torch.Tensor]) -> tuple[list[torch.Tensor], torch.Tensor]:
        wide = torch.promote_types(gradients[0].dtype, torch.float32)
        squares = [gradient.to(wide).square().sum() for gradient in gradients]
        norm = torch.stack(squares).sum().sqrt()
        factor = (self.limit / (norm + 1e-6)).clamp_max(1)
        return [(gradient * factor).to(gradient.dtype) for gradient in gradients], norm


def get_inputs(
    hidden: int = 2048, layers: int = 4, dtype: str = "float32"
) -> list[list[torch.Tensor]]:
    kind = getattr(torch, dtype)
    # Norms differ from step to step, some below the limit and most above it.
    magnitude = (torch.rand(()) * 3 + 0.2) / hidden * layers**-0.5
    shapes = [(hidden, 2 * hidden), (2 * hidden, hidden), (hidden,)] * layers
    return [[(torch.randn(shape) * magnitude).to(kind) for shape in shapes]]


def get_init_inputs() -> list[float]:
    return [1.0]
