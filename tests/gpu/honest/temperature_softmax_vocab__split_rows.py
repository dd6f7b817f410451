"""Every row is split among programs: partial maxima and sums first, then the probabilities."""

import torch
import triton
import triton.language as tl


@triton.jit
def partial_sums(logits, temperature, maxima, sums, columns, splits, chunk, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    heat = tl.load(temperature + row)
    largest = -float("inf")
    total = 0.0
    for start in range(part * chunk, tl.minimum(part * chunk + chunk, columns), BLOCK):
        c = start + tl.arange(0, BLOCK)
        inside = c < tl.minimum(part * chunk + chunk, columns)
        v = tl.load(logits + row * columns + c, mask=inside, other=-float("inf")).to(tl.float32)
        v = tl.div_rn(v, heat)
        higher = tl.maximum(largest, tl.max(v, 0))
        total = total * tl.exp(largest - higher) + tl.sum(tl.exp(v - higher), 0)
        largest = higher
    tl.store(maxima + row * splits + part, largest)
    tl.store(sums + row * splits + part, total)


@triton.jit
def probabilities(
    logits, temperature, maxima, sums, out, columns, splits, BLOCK: tl.constexpr, PARTS: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    parts = tl.arange(0, PARTS)
    m = tl.load(maxima + row * splits + parts, mask=parts < splits, other=-float("inf"))
    s = tl.load(sums + row * splits + parts, mask=parts < splits, other=0.0)
    largest = tl.max(m, 0)
    total = tl.sum(s * tl.exp(m - largest), 0)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = c < columns
    v = tl.load(logits + row * columns + c, mask=inside, other=0.0).to(tl.float32)
    v = tl.div_rn(v, tl.load(temperature + row))
    tl.store(out + row * columns + c, tl.exp(v - largest) / total, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, logits, temperature):
        logits, temperature = logits.contiguous(), temperature.contiguous()
        rows, columns = logits.shape
        out = torch.empty(rows, columns, dtype=torch.float32, device=logits.device)
        block = 4096
        # At least one block per part, and few parts where there are many rows.
        splits = max(1, min(triton.cdiv(columns, block), 512 // rows))
        chunk = triton.cdiv(triton.cdiv(columns, splits), block) * block
        splits = triton.cdiv(columns, chunk)
        partials = torch.empty(2, rows, splits, dtype=torch.float32, device=logits.device)
        partial_sums[(rows, splits)](
            logits, temperature, partials[0], partials[1], columns, splits, chunk,
            BLOCK=block, num_warps=8,
        )
        probabilities[(rows, triton.cdiv(columns, block))](
            logits, temperature, partials[0], partials[1], out, columns, splits,
            BLOCK=block, PARTS=triton.next_power_of_2(splits), num_warps=8,
        )
        return out
