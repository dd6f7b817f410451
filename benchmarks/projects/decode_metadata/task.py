"""What a server's decoding step hands to FlashAttention: lengths as 32-bit integers, their sums,
and each request's page table from its token places. Every page of a row is in use, so that what is
beyond the end of a request, which some leave as it was, plays no part."""

import torch

TASK = {
    "family": "serving",
    "workloads": {
        "small": {"requests": 9, "slots": 17, "context": 208, "page_size": 16},
        "batch": {"requests": 256, "slots": 512, "context": 8192, "page_size": 64},
        "long": {"requests": 16, "slots": 32, "context": 131072, "page_size": 64},
        "one_by_one": {"requests": 64, "slots": 128, "context": 4096, "page_size": 1},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, page_size: int) -> None:
        super().__init__()
        self.page_size = page_size

    def forward(
        self, places: torch.Tensor, rows: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        table = places[rows][:, :: self.page_size] // self.page_size
        sums = torch.cat([torch.zeros_like(lengths[:1]), lengths.cumsum(dim=0)])
        return table, sums.to(torch.int32), lengths.to(torch.int32)


def get_inputs(
    requests: int = 256, slots: int = 512, context: int = 8192, page_size: int = 64
) -> list[torch.Tensor]:
    first = torch.randint(1, 1 << 20, (slots, context // page_size, 1), dtype=torch.int32)
    within = torch.arange(page_size, dtype=torch.int32)
    places = (first * page_size + within).flatten(1)
    rows = torch.randperm(slots)[:requests]
    return [places, rows, torch.randint(context - page_size + 1, context + 1, (requests,))]


def get_init_inputs(page_size: int = 64) -> list[int]:
    return [page_size]
