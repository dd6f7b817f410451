"""Every expert's matrix times the tokens in its buffer, of which only a part is filled; the rest of
the result is zero. Mixture-of-experts layers with a capacity compute this."""

import torch

TASK = {
    "family": "matmul",
    "precision": "tf32",
    "workloads": {
        "small": {"experts": 3, "capacity": 19, "inputs": 100, "outputs": 70},
        "mixtral": {
            "experts": 8,
            "capacity": 512,
            "inputs": 4096,
            "outputs": 3584,
            "dtype": "bfloat16",
        },
        "deepseek": {
            "experts": 32,
            "capacity": 128,
            "inputs": 7168,
            "outputs": 1024,
            "dtype": "bfloat16",
        },
        "odd": {"experts": 13, "capacity": 201, "inputs": 1030, "outputs": 1500},
    },
}


class Model(torch.nn.Module):
    def __init__(self, experts: int, inputs: int, outputs: int, dtype: str) -> None:
        super().__init__()
        weight = torch.randn(experts, inputs, outputs, dtype=getattr(torch, dtype)) * inputs**-0.5
        self.weight = torch.nn.Parameter(weight)

    def forward(self, tokens: torch.Tensor, counts: torch.Tensor) -> torch.Tensor:
        places = torch.arange(tokens.shape[1], device=tokens.device)
        filled = (places < counts[:, None])[..., None]
        return torch.bmm(torch.where(filled, tokens, 0), self.weight)


def get_inputs(
    experts: int = 8,
    capacity: int = 512,
    inputs: int = 4096,
    outputs: int = 3584,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    tokens = torch.randn(experts, capacity, inputs, dtype=getattr(torch, dtype))
    return [tokens, torch.randint(capacity // 4 + 1, capacity + 1, (experts,))]


def get_init_inputs(
    experts: int = 8, inputs: int = 4096, outputs: int = 3584, dtype: str = "float32"
) -> list[object]:
    return [experts, inputs, outputs, dtype]
