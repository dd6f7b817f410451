"""A linear layer whose weights are packed 4-bit integers with a scale and a zero point per group of
128 inputs: AWQ and GPTQ models at decoding."""

import torch

TASK = {
    "family": "quantisation",
    "precision": "tf32",
    "workloads": {
        "small": {"tokens": 3, "groups": 2, "outputs": 101},
        "single": {"tokens": 1, "groups": 32, "outputs": 14336, "dtype": "float16"},
        "batch": {"tokens": 32, "groups": 56, "outputs": 4096, "dtype": "bfloat16"},
        "odd": {"tokens": 17, "groups": 39, "outputs": 5001},
    },
}

GROUP = 128


class Model(torch.nn.Module):
    def __init__(self, groups: int, outputs: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)
        packed = torch.randint(256, (outputs, groups * GROUP // 2), dtype=torch.uint8)
        self.register_buffer("packed", packed)
        scales = (torch.rand(outputs, groups, 1, dtype=kind) + 0.5) * 0.2 * (groups * GROUP) ** -0.5
        self.register_buffer("scales", scales)
        self.register_buffer("zeros", torch.randint(5, 11, (outputs, groups, 1)).to(torch.uint8))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        # The lower half of a byte holds the weight with the even number.
        nibbles = torch.stack([self.packed & 15, self.packed >> 4], dim=-1).flatten(1)
        grouped = nibbles.unflatten(1, (-1, GROUP)).to(x.dtype)
        weight = (grouped - self.zeros.to(x.dtype)) * self.scales
        return x @ weight.flatten(1).T


def get_inputs(
    tokens: int = 1, groups: int = 32, outputs: int = 14336, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(tokens, groups * GROUP, dtype=getattr(torch, dtype))]


def get_init_inputs(groups: int = 32, outputs: int = 14336, dtype: str = "float32") -> list[object]:
    return [groups, outputs, dtype]
