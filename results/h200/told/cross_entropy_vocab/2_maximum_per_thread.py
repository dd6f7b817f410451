"""Every thread keeps its own maximum and sum over the vectors it loads: no exchange inside the loop, and one extra power per vector instead of per value."""

import torch
import triton
import triton.language as tl


@triton.jit
def cross_entropy(logits, targets, losses, columns, LANES: tl.constexpr, VECTOR: tl.constexpr):
    row = tl.program_id(0).to(tl.int64)
    start_of_row = logits + row * columns
    offsets = tl.arange(0, LANES)[:, None] * VECTOR + tl.arange(0, VECTOR)[None, :]
    largest = tl.full((LANES,), -1e38, tl.float32)
    total = tl.zeros((LANES,), tl.float32)
    for start in range(0, columns, LANES * VECTOR):
        c = start + offsets
        v = tl.load(start_of_row + c, mask=c < columns, other=-float("inf")).to(tl.float32)
        higher = tl.maximum(largest, tl.max(v, 1))
        total = total * tl.exp(largest - higher) + tl.sum(tl.exp(v - higher[:, None]), 1)
        largest = higher
    top = tl.max(largest, 0)
    power_sum = tl.sum(total * tl.exp(largest - top), 0)
    target = tl.load(targets + row)
    chosen = tl.load(start_of_row + tl.maximum(target, 0)).to(tl.float32)
    loss = tl.log(power_sum) + (top - chosen)
    tl.store(losses + row, tl.where(target == -100, 0.0, loss))


class ModelNew(torch.nn.Module):
    def forward(self, logits, targets):
        logits, targets = logits.contiguous(), targets.contiguous()
        rows, columns = logits.shape
        losses = torch.empty(rows, dtype=torch.float32, device=logits.device)
        cross_entropy[(rows,)](
            logits, targets, losses, columns,
            LANES=512, VECTOR=16 // logits.element_size(), num_warps=8,
        )
        return losses
