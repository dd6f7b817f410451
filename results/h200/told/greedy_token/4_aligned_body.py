"""Rows of an odd length are split into a body that starts on 16 bytes, read 16 bytes at once, and
the few values at both ends."""

import torch
import triton
import triton.language as tl


@triton.jit
def tile(logits, c, last):
    return tl.load(logits + c, mask=c < last, other=-float("inf"), eviction_policy="evict_first")


@triton.jit
def better(largest, step, v, this):
    v = v.to(tl.float32)
    return tl.maximum(v, largest), tl.where(v > largest, this, step)


@triton.jit
def best_of_part(
    logits, where, best, columns, parts, chunk,
    BLOCK: tl.constexpr, WIDE: tl.constexpr, EVEN: tl.constexpr,
):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    c = tl.arange(0, BLOCK)
    first = part * chunk
    count = tl.minimum(chunk, columns - first)
    origin = row * columns + first
    begin = origin
    head = 0
    last = count
    if not EVEN:
        begin = (origin + WIDE - 1) // WIDE * WIDE
        head = tl.minimum((begin - origin).to(tl.int32), count)
        last = (count - head) // WIDE * WIDE
        # Up to WIDE values before the body, and as many after it.
        k = tl.arange(0, 2 * WIDE)
        e = tl.where(k < WIDE, k, head + last + k - WIDE)
        at_end = tl.where(k < WIDE, k < head, e < count)
        ends = tl.load(logits + origin + e, mask=at_end, other=-float("inf")).to(tl.float32)
        end_number = tl.where(at_end, e, 2147483647)
    logits += begin
    largest = tl.full((BLOCK,), -float("inf"), tl.float32)
    step = tl.zeros((BLOCK,), tl.int32)
    v0 = tile(logits, c, last)
    v1 = tile(logits, BLOCK + c, last)
    v2 = tile(logits, 2 * BLOCK + c, last)
    v3 = tile(logits, 3 * BLOCK + c, last)
    for start in range(0, last, 4 * BLOCK):
        # The next four are on their way while these are compared.
        ahead = start + 4 * BLOCK
        n0 = tile(logits, ahead + c, last)
        n1 = tile(logits, ahead + BLOCK + c, last)
        n2 = tile(logits, ahead + 2 * BLOCK + c, last)
        n3 = tile(logits, ahead + 3 * BLOCK + c, last)
        largest, step = better(largest, step, v0, start)
        largest, step = better(largest, step, v1, start + BLOCK)
        largest, step = better(largest, step, v2, start + 2 * BLOCK)
        largest, step = better(largest, step, v3, start + 3 * BLOCK)
        v0, v1, v2, v3 = n0, n1, n2, n3
    top = tl.max(largest, 0)
    if not EVEN:
        top = tl.maximum(top, tl.max(ends, 0))
    number = head + tl.min(tl.where(largest == top, step + c, 2147483647 - head), 0)
    if not EVEN:
        number = tl.minimum(number, tl.min(tl.where(ends == top, end_number, 2147483647), 0))
    number += first
    tl.store(where + row * parts + part, number.to(where.dtype.element_ty))
    tl.store(best + row * parts + part, top.to(best.dtype.element_ty))


@triton.jit
def best_of_all(where, best, token, logit, parts, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    p = tl.arange(0, PARTS)
    v = tl.load(best + row * parts + p, mask=p < parts, other=-float("inf")).to(tl.float32)
    number = tl.load(where + row * parts + p, mask=p < parts, other=2147483647)
    top = tl.max(v, 0)
    tl.store(token + row, tl.min(tl.where(v == top, number, 2147483647), 0).to(tl.int64))
    tl.store(logit + row, top.to(logit.dtype.element_ty))


class ModelNew(torch.nn.Module):
    def forward(self, logits):
        logits = logits.contiguous()
        rows, columns = logits.shape
        token = torch.empty(rows, dtype=torch.int64, device=logits.device)
        logit = torch.empty(rows, dtype=logits.dtype, device=logits.device)
        wide = 16 // logits.element_size()
        if rows >= 128 or columns * logits.element_size() <= 256 << 10:
            # A row per program: two of 16 warps per multiprocessor, or one of 32.
            warps = 16 if rows > 132 else 32
            best_of_part[(rows, 1)](
                logits, token, logit, columns, 1, columns,
                BLOCK=warps * 32 * wide, WIDE=wide, EVEN=columns % wide == 0, num_warps=warps,
            )
            return token, logit
        block = 128 * wide
        parts = max(1, 264 // rows)
        chunk = triton.cdiv(triton.cdiv(columns, parts), block) * block
        parts = triton.cdiv(columns, chunk)
        where = torch.empty(rows, parts, dtype=torch.int32, device=logits.device)
        best = torch.empty(rows, parts, dtype=logits.dtype, device=logits.device)
        best_of_part[(rows, parts)](
            logits, where, best, columns, parts, chunk,
            BLOCK=block, WIDE=wide, EVEN=columns % wide == 0, num_warps=4,
        )
        best_of_all[(rows,)](
            where, best, token, logit, parts, PARTS=triton.next_power_of_2(parts), num_warps=4
        )
        return token, logit
