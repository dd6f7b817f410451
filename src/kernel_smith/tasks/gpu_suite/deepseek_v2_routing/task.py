"""DeepSeek-V2 routing, as in LMDeploy: softmax scores, the best groups of experts by their best
one, the best experts in those, best first, with their scores times a factor."""

import torch

TASK = {
    "family": "moe-routing",
    "workloads": {
        "small": {"tokens": 29, "experts": 48, "groups": 4, "chosen_groups": 2, "chosen": 5},
        "decode": {"tokens": 256, "experts": 160, "groups": 8, "chosen_groups": 3, "chosen": 6},
        "prefill": {"tokens": 8192, "experts": 160, "groups": 8, "chosen_groups": 3, "chosen": 6},
        "odd": {"tokens": 2001, "experts": 99, "groups": 9, "chosen_groups": 4, "chosen": 7},
    },
    # Without "large" and "spikes": scores that underflow to zero are told apart by rounding alone.
    "variants": ["small", "sorted", "ties"],
}


def best_first(scores: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    # A stable sort, because topk does not say which of equal values it takes.
    values, indices = torch.sort(scores, dim=-1, descending=True, stable=True)
    return values[..., :count], indices[..., :count]


class Model(torch.nn.Module):
    def __init__(self, groups: int, chosen_groups: int, chosen: int, factor: float) -> None:
        super().__init__()
        self.groups, self.chosen_groups, self.chosen = groups, chosen_groups, chosen
        self.factor = factor

    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        grouped = torch.softmax(logits, dim=-1).unflatten(-1, (self.groups, -1))
        _, groups = best_first(grouped.amax(dim=-1), self.chosen_groups)
        open_groups = torch.zeros_like(grouped[..., 0], dtype=torch.bool).scatter(1, groups, True)
        eligible = grouped.masked_fill(~open_groups[..., None], 0.0).flatten(1)
        weights, experts = best_first(eligible, self.chosen)
        return weights * self.factor, experts.to(torch.int32)


def get_inputs(
    tokens: int = 256, experts: int = 160, groups: int = 8, chosen_groups: int = 3, chosen: int = 6
) -> list[torch.Tensor]:
    return [torch.randn(tokens, experts) * 2]


def get_init_inputs(groups: int = 8, chosen_groups: int = 3, chosen: int = 6) -> list[object]:
    return [groups, chosen_groups, chosen, 16.0]
