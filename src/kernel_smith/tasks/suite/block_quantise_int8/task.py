"""Quantise blocks of 32 values to int8 with one power-of-two scale each, as in the MX formats; the
integers and the scales are returned. Powers of two make every result exact in any precision."""

import torch

TASK = {
    "family": "quantisation",
    "workloads": {
        "activations": {"rows": 128, "columns": 768},
        "odd": {"rows": 77, "columns": 352},
    },
}

BLOCK = 32


class Model(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        blocks = x.view(x.shape[0], -1, BLOCK)
        largest = blocks.abs().amax(dim=-1, keepdim=True)
        mantissa, _ = torch.frexp(largest)
        # largest / mantissa is the least power of two above the largest; a block of zeros gets 1.
        scales = torch.where(largest > 0, largest / mantissa / 128, 1)
        integers = torch.round(blocks / scales).clamp(-127, 127).to(torch.int8)
        return integers.view(x.shape), scales.squeeze(-1)


def get_inputs(rows: int = 128, columns: int = 768) -> list[torch.Tensor]:
    # Blocks of different magnitude, so that the scales differ.
    magnitude = torch.exp2(torch.randn(rows, columns // BLOCK, 1) * 3)
    return [(torch.randn(rows, columns // BLOCK, BLOCK) * magnitude).view(rows, columns)]
