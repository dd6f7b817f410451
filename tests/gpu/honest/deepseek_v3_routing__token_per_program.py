"""One program per token; the best are taken one after the other, the lowest number among equals."""

import torch
import triton
import triton.language as tl


@triton.jit
def route(
    logits, bias, weights_out, experts_out, experts, factor, group_size,
    GROUPS: tl.constexpr, CHOSEN_GROUPS: tl.constexpr, CHOSEN: tl.constexpr,
    PADDED_GROUPS: tl.constexpr, PADDED_SIZE: tl.constexpr, PADDED_CHOSEN: tl.constexpr,
):
    token = tl.program_id(0).to(tl.int64)
    g = tl.arange(0, PADDED_GROUPS)
    e = tl.arange(0, PADDED_SIZE)
    number = g[:, None] * group_size + e[None, :]
    exists = (g < GROUPS)[:, None] & (e < group_size)[None, :]
    logit = tl.load(logits + token * experts + number, mask=exists, other=0.0)
    score = tl.div_rn(1.0, 1.0 + tl.exp(-logit))
    lowest = -float("inf")
    biased = tl.where(
        exists, score + tl.load(bias + number, mask=exists, other=0.0), lowest
    )

    best = tl.max(biased, 1)
    best_at = tl.min(tl.where(biased == best[:, None], e[None, :], PADDED_SIZE), 1)
    second = tl.max(tl.where(e[None, :] == best_at[:, None], lowest, biased), 1)
    group_score = tl.where(g < GROUPS, best + second, lowest)
    is_open = tl.zeros((PADDED_GROUPS,), tl.int32)
    for _ in tl.static_range(CHOSEN_GROUPS):
        top = tl.max(group_score, 0)
        winner = tl.min(tl.where(group_score == top, g, PADDED_GROUPS), 0)
        is_open = tl.where(g == winner, 1, is_open)
        group_score = tl.where(g == winner, lowest, group_score)

    eligible = tl.where((is_open == 1)[:, None], biased, lowest)
    slots = tl.arange(0, PADDED_CHOSEN)
    taken = tl.zeros((PADDED_CHOSEN,), tl.int32)
    weight = tl.zeros((PADDED_CHOSEN,), tl.float32)
    for i in tl.static_range(CHOSEN):
        top = tl.max(tl.max(eligible, 1), 0)
        winner = tl.min(tl.min(tl.where(eligible == top, number, experts), 1), 0)
        here = number == winner
        own = tl.sum(tl.sum(tl.where(here & exists, score, 0.0), 1), 0)
        taken = tl.where(slots == i, winner, taken)
        weight = tl.where(slots == i, own, weight)
        eligible = tl.where(here, lowest, eligible)
    weight = weight / tl.sum(weight, 0) * factor
    tl.store(weights_out + token * CHOSEN + slots, weight, mask=slots < CHOSEN)
    tl.store(experts_out + token * CHOSEN + slots, taken, mask=slots < CHOSEN)


class ModelNew(torch.nn.Module):
    def __init__(self, experts, groups, chosen_groups, chosen):
        super().__init__()
        self.groups, self.chosen_groups, self.chosen = groups, chosen_groups, chosen
        self.factor = 2.5
        self.bias = torch.nn.Parameter(torch.randn(experts) * 0.1)

    def forward(self, logits):
        logits = logits.contiguous()
        tokens, experts = logits.shape
        weights = torch.empty(tokens, self.chosen, dtype=logits.dtype, device=logits.device)
        numbers = torch.empty(tokens, self.chosen, dtype=torch.int32, device=logits.device)
        group_size = experts // self.groups
        route[(tokens,)](
            logits, self.bias, weights, numbers, experts, self.factor, group_size,
            GROUPS=self.groups, CHOSEN_GROUPS=self.chosen_groups, CHOSEN=self.chosen,
            PADDED_GROUPS=triton.next_power_of_2(self.groups),
            PADDED_SIZE=triton.next_power_of_2(group_size),
            PADDED_CHOSEN=triton.next_power_of_2(self.chosen),
            num_warps=1,
        )
        return weights, numbers
