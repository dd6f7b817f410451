"""DeepSeek-V3 and R1 routing, as LMDeploy and SGLang fuse it: sigmoid scores, a bias that only
selects, the best groups of experts by their two best, the best experts in those, best first."""

import torch

TASK = {
    "family": "moe-routing",
    "workloads": {
        "small": {"tokens": 37, "experts": 64, "groups": 8, "chosen_groups": 4, "chosen": 6},
        "decode": {"tokens": 128, "experts": 256, "groups": 8, "chosen_groups": 4, "chosen": 8},
        "prefill": {"tokens": 8192, "experts": 256, "groups": 8, "chosen_groups": 4, "chosen": 8},
        "odd": {"tokens": 1003, "experts": 160, "groups": 5, "chosen_groups": 3, "chosen": 7},
    },
    # Without "large" and "spikes": scores that saturate are told apart by rounding alone.
    "variants": ["small", "sorted", "ties"],
}


def best_first(scores: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    # A stable sort, because topk does not say which of equal values it takes.
    values, indices = torch.sort(scores, dim=-1, descending=True, stable=True)
    return values[..., :count], indices[..., :count]


class Model(torch.nn.Module):
    def __init__(self, experts: int, groups: int, chosen_groups: int, chosen: int) -> None:
        super().__init__()
        self.groups, self.chosen_groups, self.chosen = groups, chosen_groups, chosen
        self.factor = 2.5
        self.bias = torch.nn.Parameter(torch.randn(experts) * 0.1)

    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scores = torch.sigmoid(logits)
        biased = (scores + self.bias).unflatten(-1, (self.groups, -1))
        best_two, _ = best_first(biased, 2)
        _, groups = best_first(best_two.sum(dim=-1), self.chosen_groups)
        open_groups = torch.zeros_like(biased[..., 0], dtype=torch.bool).scatter(1, groups, True)
        eligible = biased.masked_fill(~open_groups[..., None], float("-inf")).flatten(1)
        _, experts = best_first(eligible, self.chosen)
        weights = scores.gather(1, experts)
        weights = weights / weights.sum(dim=-1, keepdim=True) * self.factor
        return weights, experts.to(torch.int32)


def get_inputs(
    tokens: int = 128, experts: int = 256, groups: int = 8, chosen_groups: int = 4, chosen: int = 8
) -> list[torch.Tensor]:
    return [torch.randn(tokens, experts) * 2]


def get_init_inputs(
    experts: int = 256, groups: int = 8, chosen_groups: int = 4, chosen: int = 8
) -> list[int]:
    return [experts, groups, chosen_groups, chosen]
