"""Sort the token-expert pairs by expert and pad every expert's run to whole blocks: the list of
pairs and each block's expert that fused MoE kernels of vLLM and SGLang read. Padding holds the
number of pairs; unused blocks hold -1."""

import torch

TASK = {
    "family": "moe-routing",
    "workloads": {
        "small": {"tokens": 45, "chosen": 3, "experts": 10, "block": 16},
        "decode": {"tokens": 128, "chosen": 8, "experts": 256, "block": 16},
        "prefill": {"tokens": 8192, "chosen": 8, "experts": 256, "block": 64},
        "odd": {"tokens": 3001, "chosen": 6, "experts": 159, "block": 48},
    },
}


class Model(torch.nn.Module):
    def __init__(self, experts: int, block: int) -> None:
        super().__init__()
        self.experts, self.block = experts, block

    def forward(self, chosen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        flat = chosen.flatten().long()
        pairs, device = flat.numel(), flat.device
        numbers = torch.arange(self.experts, device=device)
        by_expert, order = torch.sort(flat, stable=True)
        starts = torch.searchsorted(by_expert, numbers)
        counts = torch.searchsorted(by_expert, numbers, right=True) - starts
        padded = (counts + self.block - 1) // self.block * self.block
        ends = padded.cumsum(dim=0)
        place = torch.arange(pairs, device=device) - starts[by_expert]
        place = place + (ends - padded)[by_expert]
        # At most block - 1 places of padding for each expert.
        blocks = (pairs + self.experts * (self.block - 1)) // self.block + 1
        listed = torch.full((blocks * self.block,), pairs, device=device).scatter(0, place, order)
        first = torch.arange(blocks, device=device) * self.block
        owner = torch.searchsorted(ends, first, right=True)
        owner = torch.where(first < ends[-1], owner, -1)
        return listed.to(torch.int32), owner.to(torch.int32), ends[-1:].to(torch.int32)


def get_inputs(
    tokens: int = 128, chosen: int = 8, experts: int = 256, block: int = 16
) -> list[torch.Tensor]:
    # Popular and unpopular experts.
    numbers = torch.rand(tokens, chosen).square() * experts
    return [numbers.to(torch.int32).clamp_max(experts - 1)]


def get_init_inputs(experts: int = 256, block: int = 16) -> list[int]:
    return [experts, block]
