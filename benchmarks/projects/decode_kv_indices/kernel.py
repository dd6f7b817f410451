"""Several programs share a request, so that a few long ones occupy the whole GPU, too: together
they take block after block until the request ends."""

import torch
import triton
import triton.language as tl


@triton.jit
def join_places(
    places,
    rows,
    lengths,
    starts,
    joined,
    row_stride,
    BLOCK: tl.constexpr,
):
    request = tl.program_id(0)
    length = tl.load(lengths + request).to(tl.int32)
    row = places + tl.load(rows + request).to(tl.int64) * row_stride
    part = joined + tl.load(starts + request).to(tl.int64)
    c = tl.arange(0, BLOCK)
    for first in range(tl.program_id(1) * BLOCK, length, tl.num_programs(1) * BLOCK):
        inside = first + c < length
        place = tl.load(row + first + c, mask=inside, other=0)
        tl.store(part + first + c, place.to(tl.int64), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, total):
        super().__init__()
        self.total = total

    def forward(self, places, rows, lengths, starts):
        rows, lengths, starts = rows.contiguous(), lengths.contiguous(), starts.contiguous()
        requests, context = rows.shape[0], places.shape[1]
        joined = torch.empty(self.total, dtype=torch.int64, device=places.device)
        block = min(1024, triton.next_power_of_2(context))
        # About eight programs for each of 132 multiprocessors, if there is enough for them.
        shares = min(triton.cdiv(context, block), max(1, 1056 // requests))
        join_places[(requests, shares)](
            places, rows, lengths, starts, joined, places.stride(0), BLOCK=block, num_warps=4
        )
        return joined
