"""Mixture-of-experts routing: the softmax over each token's k best experts, and who they are, best
first. Of equal logits the expert with the lower number comes first."""

import torch

TASK = {
    "family": "indexing",
    "workloads": {
        "few_experts": {"tokens": 512, "experts": 8, "chosen": 2},
        "many_experts": {"tokens": 128, "experts": 64, "chosen": 6},
        "odd": {"tokens": 203, "experts": 37, "chosen": 3},
    },
}


class Model(torch.nn.Module):
    def __init__(self, chosen: int) -> None:
        super().__init__()
        self.chosen = chosen

    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        # A stable sort, because topk does not say which of equal values it takes.
        values, experts = torch.sort(logits, dim=-1, descending=True, stable=True)
        weights = torch.softmax(values[:, : self.chosen], dim=-1)
        return weights, experts[:, : self.chosen].contiguous()


def get_inputs(tokens: int = 512, experts: int = 8, chosen: int = 2) -> list[torch.Tensor]:
    return [torch.randn(tokens, experts) * 2]


def get_init_inputs(chosen: int = 2) -> list[int]:
    return [chosen]
