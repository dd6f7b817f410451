"""Mean of the smooth L1 loss, squared below `beta` and linear above, in single precision: how
object detectors learn the coordinates of boxes."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "loss",
    "workloads": {
        "small": {"boxes": 6007},
        "large": {"boxes": 1048576},
        "half": {"boxes": 2097152, "dtype": "float16"},
        "odd": {"boxes": 700001},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, beta: float) -> None:
        super().__init__()
        self.beta = beta

    def forward(self, x: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        wide = torch.promote_types(x.dtype, torch.float32)
        return F.smooth_l1_loss(x.to(wide), target.to(wide), beta=self.beta)


def get_inputs(boxes: int = 1048576, dtype: str = "float32") -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    target = torch.randn(boxes, 4)
    # Sometimes good predictions, sometimes bad ones: the loss must not be known beforehand.
    error = torch.randn(boxes, 4) * 10 ** (torch.rand(()) * 2 - 1)
    return [(target + error).to(kind), target.to(kind)]


def get_init_inputs() -> list[float]:
    return [0.5]
