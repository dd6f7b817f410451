"""A small convolutional network: stem, two residual blocks with stored batch statistics, pooling
and classifier, as for small images."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "network",
    "precision": "tf32",
    "workloads": {
        "small": {"batch": 2, "size": 25, "channels": 19},
        "images": {"batch": 256, "size": 32, "channels": 64, "dtype": "float16"},
        "odd": {"batch": 37, "size": 61, "channels": 75},
    },
}


class Block(torch.nn.Module):
    def __init__(self, channels: int, kind: torch.dtype) -> None:
        super().__init__()
        self.first = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False, dtype=kind)
        self.second = torch.nn.Conv2d(channels, channels, 3, padding=1, bias=False, dtype=kind)
        self.register_buffer("mean", 0.1 * torch.randn(2, channels, dtype=kind))
        self.register_buffer("variance", torch.rand(2, channels, dtype=kind) * 0.3 + 0.1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        inner = F.batch_norm(self.first(x), self.mean[0], self.variance[0])
        inner = F.batch_norm(self.second(F.relu(inner)), self.mean[1], self.variance[1])
        return F.relu(x + inner)


class Model(torch.nn.Module):
    def __init__(self, channels: int, classes: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        self.stem = torch.nn.Conv2d(3, channels, 3, padding=1, dtype=kind)
        self.blocks = torch.nn.Sequential(Block(channels, kind), Block(channels, kind))
        self.classifier = torch.nn.Linear(channels, classes, dtype=kind)

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = self.blocks(F.relu(self.stem(images)))
        # A spatial maximum: means of noise would be the same for every image.
        return self.classifier(features.amax(dim=(2, 3)))


def get_inputs(
    batch: int = 256, size: int = 32, channels: int = 64, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    colour = torch.randn(batch, 3, 1, 1, dtype=kind)
    return [torch.randn(batch, 3, size, size, dtype=kind) + colour]


def get_init_inputs(channels: int = 64, dtype: str = "float32") -> list[object]:
    return [channels, 100, dtype]
