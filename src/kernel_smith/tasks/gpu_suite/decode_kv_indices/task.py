"""SGLang's preparation of a decoding step: from each request's row in the table of token places and
its length, the offsets (indptr) and the joined list of places (indices) that attention reads. The
list has a fixed size, as CUDA graphs demand; its unused end is zero."""

import torch

TASK = {
    "family": "serving",
    "workloads": {
        "small": {"requests": 11, "slots": 20, "context": 203},
        "batch": {"requests": 256, "slots": 512, "context": 4096},
        "long": {"requests": 16, "slots": 64, "context": 65536},
        "odd": {"requests": 131, "slots": 300, "context": 8191},
    },
}


class Model(torch.nn.Module):
    def forward(
        self, places: torch.Tensor, rows: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        requests, context = rows.shape[0], places.shape[1]
        ends = lengths.cumsum(dim=0)
        offsets = torch.cat([torch.zeros_like(ends[:1]), ends])
        slots = torch.arange(requests * context, device=places.device)
        owner = torch.searchsorted(ends, slots, right=True)
        used = owner < requests
        owner = owner.clamp_max(requests - 1)
        position = torch.where(used, slots - offsets[owner], 0)
        indices = torch.where(used, places[rows[owner], position], 0)
        return offsets.to(torch.int32), indices


def get_inputs(requests: int = 256, slots: int = 512, context: int = 4096) -> list[torch.Tensor]:
    places = torch.randint(1, 1 << 30, (slots, context), dtype=torch.int32)
    rows = torch.randperm(slots)[:requests]
    return [places, rows, torch.randint(1, context + 1, (requests,))]
