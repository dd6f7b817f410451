"""A padded 3x3 convolution with bias on latent feature maps, the bulk of a diffusion U-Net."""

import torch

TASK = {
    "family": "convolution",
    "precision": "tf32",
    "workloads": {
        "small": {"batch": 1, "inputs": 9, "outputs": 14, "height": 33, "width": 29},
        "latent": {
            "batch": 8,
            "inputs": 320,
            "outputs": 320,
            "height": 64,
            "width": 64,
            "dtype": "float16",
        },
        "resnet": {"batch": 32, "inputs": 128, "outputs": 128, "height": 28, "width": 28},
        "odd": {"batch": 3, "inputs": 101, "outputs": 203, "height": 93, "width": 61},
    },
}


class Model(torch.nn.Module):
    def __init__(self, inputs: int, outputs: int, dtype: str) -> None:
        super().__init__()
        self.convolution = torch.nn.Conv2d(
            inputs, outputs, 3, padding=1, dtype=getattr(torch, dtype)
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.convolution(x)


def get_inputs(
    batch: int = 8,
    inputs: int = 320,
    outputs: int = 320,
    height: int = 64,
    width: int = 64,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    return [torch.randn(batch, inputs, height, width, dtype=getattr(torch, dtype))]


def get_init_inputs(inputs: int = 320, outputs: int = 320, dtype: str = "float32") -> list[object]:
    return [inputs, outputs, dtype]
