"""A linear layer plus the low-rank adapter of each token's own request: serving many fine-tuned
models from one set of weights (Punica, S-LoRA)."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "fused-matmul",
    "precision": "tf32",
    "workloads": {
        "small": {"tokens": 7, "inputs": 150, "outputs": 131, "rank": 8, "adapters": 5},
        "decode": {
            "tokens": 64,
            "inputs": 4096,
            "outputs": 4096,
            "rank": 16,
            "adapters": 64,
            "dtype": "bfloat16",
        },
        "odd": {"tokens": 250, "inputs": 2050, "outputs": 3001, "rank": 12, "adapters": 31},
    },
}


class Model(torch.nn.Module):
    def __init__(self, inputs: int, outputs: int, rank: int, adapters: int, dtype: str) -> None:
        super().__init__()
        kind = getattr(torch, dtype)

        def weights(*shape: int) -> torch.nn.Parameter:
            return torch.nn.Parameter(torch.randn(shape, dtype=kind) * shape[-1] ** -0.5)

        self.weight = weights(outputs, inputs)
        self.shrink = weights(adapters, rank, inputs)
        self.expand = weights(adapters, outputs, rank)

    def forward(self, x: torch.Tensor, adapter: torch.Tensor) -> torch.Tensor:
        narrow = torch.bmm(self.shrink[adapter], x[..., None])
        return F.linear(x, self.weight) + torch.bmm(self.expand[adapter], narrow).squeeze(-1)


def get_inputs(
    tokens: int = 64,
    inputs: int = 4096,
    outputs: int = 4096,
    rank: int = 16,
    adapters: int = 64,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    x = torch.randn(tokens, inputs, dtype=getattr(torch, dtype))
    return [x, torch.randint(adapters, (tokens,))]


def get_init_inputs(
    inputs: int = 4096,
    outputs: int = 4096,
    rank: int = 16,
    adapters: int = 64,
    dtype: str = "float32",
) -> list[object]:
    return [inputs, outputs, rank, adapters, dtype]
