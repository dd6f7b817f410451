"""A padded 3x3 convolution with bias and ReLU, the workhorse of VGG, ResNet and U-Net."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "convolution",
    "workloads": {
        "features": {"batch": 1, "inputs": 16, "outputs": 24, "height": 28, "width": 28},
        "odd": {"batch": 2, "inputs": 7, "outputs": 13, "height": 27, "width": 31},
        "downsampling": {
            "batch": 1,
            "inputs": 24,
            "outputs": 32,
            "height": 33,
            "width": 33,
            "stride": 2,
        },
    },
}


class Model(torch.nn.Module):
    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.convolution(x))


def get_inputs(
    batch: int = 1,
    inputs: int = 16,
    outputs: int = 24,
    height: int = 28,
    width: int = 28,
    stride: int = 1,
) -> list[torch.Tensor]:
    return [torch.randn(batch, inputs, height, width)]


def get_init_inputs(inputs: int = 16, outputs: int = 24, stride: int = 1) -> list[int]:
    return [inputs, outputs, stride]
