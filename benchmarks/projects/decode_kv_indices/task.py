"""What a server's decoding step hands to attention over a paged cache: the token places of all
requests, joined into one list, from each request's row in the table of places, its length, and
where its part of the list begins. Lengths differ, and their sum is known, as a server knows it."""

import torch

TASK = {
    "family": "serving",
    "workloads": {
        "small": {"requests": 11, "slots": 20, "context": 208},
        "batch": {"requests": 256, "slots": 512, "context": 4096},
        "long": {"requests": 16, "slots": 64, "context": 65536},
        "odd": {"requests": 131, "slots": 300, "context": 8191},
    },
    "library_calls": False,
}


def lengths_of(requests: int, context: int) -> list[int]:
    return [context // 2 + 1 + n * (context // 2) // requests for n in range(requests)]


class Model(torch.nn.Module):
    def __init__(self, total: int) -> None:
        super().__init__()
        self.total = total

    def forward(
        self,
        places: torch.Tensor,
        rows: torch.Tensor,
        lengths: torch.Tensor,
        starts: torch.Tensor,
    ) -> torch.Tensor:
        owner = torch.repeat_interleave(rows, lengths, output_size=self.total)
        first = torch.repeat_interleave(starts[:-1], lengths, output_size=self.total)
        position = torch.arange(self.total, device=places.device) - first
        return places[owner, position].long()


def get_inputs(requests: int = 256, slots: int = 512, context: int = 4096) -> list[torch.Tensor]:
    places = torch.randint(1, 1 << 30, (slots, context), dtype=torch.int32)
    rows = torch.randperm(slots)[:requests]
    lengths = torch.tensor(lengths_of(requests, context))[torch.randperm(requests)]
    starts = torch.cat([torch.zeros_like(lengths[:1]), lengths.cumsum(dim=0)])
    return [places, rows, lengths, starts.to(torch.int32)]


def get_init_inputs(requests: int = 256, context: int = 4096) -> list[int]:
    return [sum(lengths_of(requests, context))]
