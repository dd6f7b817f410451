"""Pieces of 128 columns, one entry per thread, so that all gathers are in flight at once; page size and strides are constants."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_lengths(lengths, sums, last, requests, PAGE: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(sums, 0)
    before = 0
    for first in range(0, requests, BLOCK):
        r = first + tl.arange(0, BLOCK)
        length = tl.load(lengths + r, mask=r < requests, other=0).to(tl.int32)
        pages = (length + PAGE - 1) // PAGE
        tl.store(last + r, length - (pages - 1) * PAGE, mask=r < requests)
        tl.store(sums + 1 + r, before + tl.cumsum(length, 0), mask=r < requests)
        before += tl.sum(length, 0)


@triton.jit
def metadata(
    places, rows, lengths, table, sums, last, requests, columns, row_stride,
    STEP: tl.constexpr, PAGE: tl.constexpr, BLOCK: tl.constexpr,
):
    request = tl.program_id(1).to(tl.int64) - 1
    if request < 0:
        if tl.program_id(0) == 0:
            sum_lengths(lengths, sums, last, requests, PAGE, 256)
    else:
        n = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        start = places + tl.load(rows + request) * row_stride
        length = tl.load(lengths + request).to(tl.int32)
        place = tl.load(start + n * STEP, mask=n * PAGE < length, other=0)
        tl.store(table + request * columns + n, place // PAGE, mask=n < columns)


class ModelNew(torch.nn.Module):
    def __init__(self, page_size):
        super().__init__()
        self.page_size = page_size

    def forward(self, places, rows, lengths):
        rows, lengths = rows.contiguous(), lengths.contiguous()
        requests, columns = rows.shape[0], triton.cdiv(places.shape[1], self.page_size)
        table = torch.empty(requests, columns, dtype=places.dtype, device=places.device)
        sums = torch.empty(requests + 1, dtype=torch.int32, device=places.device)
        last = torch.empty(requests, dtype=torch.int32, device=places.device)
        metadata[(triton.cdiv(columns, 128), requests + 1)](
            places, rows, lengths, table, sums, last, requests, columns, places.stride(0),
            STEP=self.page_size * places.stride(1), PAGE=self.page_size, BLOCK=128, num_warps=4,
        )
        return table, sums, last
