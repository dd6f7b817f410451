"""Few rows are split into parts that one load each covers, merged by a tiny second kernel; long rows get twice the warps, for a shorter last wave."""

import torch
import triton
import triton.language as tl


@triton.jit
def absorb(v, largest, total):
    higher = tl.maximum(largest, tl.max(v, 1))
    total = total * tl.exp(largest - higher) + tl.sum(tl.exp(v - higher[:, None]), 1)
    return higher, total


@triton.jit
def stream(at):
    return tl.load(at, eviction_policy="evict_first")


@triton.jit
def cross_entropy(logits, targets, losses, columns, LANES: tl.constexpr, VECTOR: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    target = tl.load(targets + row)
    chosen = tl.load(logits + row * columns + tl.maximum(target, 0)).to(tl.float32)
    TILE: tl.constexpr = LANES * VECTOR
    offsets = tl.arange(0, LANES)[:, None] * VECTOR + tl.arange(0, VECTOR)[None, :]
    largest = tl.full((LANES,), -1e38, tl.float32)
    total = tl.zeros((LANES,), tl.float32)
    # The first multiple of the vector's length in the row, and the tiles from there.
    body = (row * columns + VECTOR - 1) // VECTOR * VECTOR
    head = (body - row * columns).to(tl.int32)
    tiles = (columns - head) // TILE
    start_of_body = logits + tl.multiple_of(body, VECTOR)
    fours = tiles // 4 * 4
    for t in range(0, fours, 4):
        at = start_of_body + t * TILE + offsets
        a, b = stream(at), stream(at + TILE)
        c, d = stream(at + 2 * TILE), stream(at + 3 * TILE)
        a, b, c, d = a.to(tl.float32), b.to(tl.float32), c.to(tl.float32), d.to(tl.float32)
        higher = tl.max(tl.maximum(tl.maximum(a, b), tl.maximum(c, d)), 1)
        higher = tl.maximum(largest, higher)
        top = higher[:, None]
        powers = (tl.exp(a - top) + tl.exp(b - top)) + (tl.exp(c - top) + tl.exp(d - top))
        total = total * tl.exp(largest - higher) + tl.sum(powers, 1)
        largest = higher
    for t in range(fours, tiles):
        v = stream(start_of_body + t * TILE + offsets)
        largest, total = absorb(v.to(tl.float32), largest, total)
    # What is left: a few values before the body, and less than a tile after it.
    for start in range(0, columns - tiles * TILE, TILE):
        e = start + offsets
        e = tl.where(e < head, e, e + tiles * TILE)
        v = tl.load(logits + row * columns + e, mask=e < columns, other=-float("inf"))
        largest, total = absorb(v.to(tl.float32), largest, total)
    top = tl.max(largest, 0)
    power_sum = tl.sum(total * tl.exp(largest - top), 0)
    loss = tl.log(power_sum) + (top - chosen)
    tl.store(losses + row, tl.where(target == -100, 0.0, loss))


@triton.jit
def part_of_row(logits, targets, partial, columns, parts, BLOCK: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    part = tl.program_id(1)
    c = part * BLOCK + tl.arange(0, BLOCK)
    v = tl.load(logits + row * columns + c, mask=c < columns, other=-float("inf")).to(tl.float32)
    top = tl.maximum(tl.max(v, 0), -1e38)
    at = partial + row * (2 * parts + 1)
    tl.store(at + part, top)
    tl.store(at + parts + part, tl.sum(tl.exp(v - top), 0))
    if part == 0:
        target = tl.maximum(tl.load(targets + row), 0)
        tl.store(at + 2 * parts, tl.load(logits + row * columns + target).to(tl.float32))


@triton.jit
def merge(partial, targets, losses, parts, PARTS: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    p = tl.arange(0, PARTS)
    at = partial + row * (2 * parts + 1)
    largest = tl.load(at + p, mask=p < parts, other=-1e38)
    total = tl.load(at + parts + p, mask=p < parts, other=0.0)
    chosen = tl.load(at + 2 * parts)
    target = tl.load(targets + row)
    top = tl.max(largest, 0)
    loss = tl.log(tl.sum(total * tl.exp(largest - top), 0)) + (top - chosen)
    tl.store(losses + row, tl.where(target == -100, 0.0, loss))


class ModelNew(torch.nn.Module):
    def forward(self, logits, targets):
        logits, targets = logits.contiguous(), targets.contiguous()
        rows, columns = logits.shape
        losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
        if rows * columns <= 1 << 20:
            parts = triton.cdiv(columns, 2048)
            partial = torch.empty(rows, 2 * parts + 1, dtype=torch.float32, device=logits.device)
            part_of_row[(rows, parts)](
                logits, targets, partial, columns, parts, BLOCK=2048, num_warps=8
            )
            merge[(rows,)](
                partial, targets, losses, parts, PARTS=triton.next_power_of_2(parts), num_warps=1
            )
            return losses
        warps = 16 if columns >= 65536 or rows < 264 else 8
        cross_entropy[(rows,)](
            logits, targets, losses, columns,
            LANES=warps * 32, VECTOR=16 // logits.element_size(), num_warps=warps,
        )
        return losses
