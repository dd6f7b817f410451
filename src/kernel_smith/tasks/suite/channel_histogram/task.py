"""How often each of the 256 values occurs in each channel of an 8-bit image, as for equalisation,
thresholding and exposure."""

import torch

TASK = {
    "family": "histogram",
    "workloads": {
        "image": {"channels": 3, "height": 240, "width": 320},
        "odd": {"channels": 5, "height": 97, "width": 131},
    },
}


class Model(torch.nn.Module):
    def forward(self, image: torch.Tensor) -> torch.Tensor:
        pixels = image.flatten(1).long()
        counts = torch.zeros(image.shape[0], 256, dtype=torch.int64)
        return counts.scatter_add(1, pixels, torch.ones_like(pixels))


def get_inputs(channels: int = 3, height: int = 240, width: int = 320) -> list[torch.Tensor]:
    brightness = 128 + 40 * torch.randn(channels, 1, 1)
    image = brightness + 30 * torch.randn(channels, height, width)
    return [image.clamp(0, 255).to(torch.uint8)]
