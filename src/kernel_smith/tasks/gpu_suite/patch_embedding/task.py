"""Cut images into patches and project each to a token vector, with position embeddings added: the
first layer of every vision transformer."""

import torch

TASK = {
    "family": "convolution",
    "precision": "tf32",
    "workloads": {
        "small": {"batch": 1, "size": 70, "patch": 14, "hidden": 130},
        "large": {"batch": 64, "size": 224, "patch": 14, "hidden": 1024, "dtype": "float16"},
        "odd": {"batch": 19, "size": 378, "patch": 14, "hidden": 1155},
    },
}


class Model(torch.nn.Module):
    def __init__(self, size: int, patch: int, hidden: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        self.project = torch.nn.Conv2d(3, hidden, patch, stride=patch, dtype=kind)
        tokens = (size // patch) ** 2
        self.positions = torch.nn.Parameter(torch.randn(tokens, hidden, dtype=kind) * 0.5)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return self.project(images).flatten(2).transpose(1, 2) + self.positions


def get_inputs(
    batch: int = 64, size: int = 224, patch: int = 14, hidden: int = 1024, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(batch, 3, size, size, dtype=getattr(torch, dtype))]


def get_init_inputs(
    size: int = 224, patch: int = 14, hidden: int = 1024, dtype: str = "float32"
) -> list[object]:
    return [size, patch, hidden, dtype]
