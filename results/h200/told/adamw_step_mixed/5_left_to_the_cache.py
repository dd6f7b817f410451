"""One tile per program again, without hints: what is written stays in the cache as long as there is
room, and a count that divides by the tile is not masked."""

import torch
import triton
import triton.language as tl


@triton.jit
def adamw(
    weights, gradient, first, second, new_weights, new_first, new_second, short_weights, count,
    beta1, other1, beta2, other2, keep, rate, shrink,
    BLOCK: tl.constexpr, EVEN: tl.constexpr,
):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = None if EVEN else at < count
    w = tl.load(weights + at, mask=inside)
    g = tl.load(gradient + at, mask=inside).to(tl.float32)
    m = tl.load(first + at, mask=inside)
    v = tl.load(second + at, mask=inside)
    m = beta1 * m + other1 * g
    v = beta2 * v + other2 * (g * g)
    w = w * keep - rate * m / (tl.sqrt(v * shrink) + 1e-8)
    tl.store(new_weights + at, w, mask=inside)
    tl.store(new_first + at, m, mask=inside)
    tl.store(new_second + at, v, mask=inside)
    tl.store(short_weights + at, w.to(short_weights.dtype.element_ty), mask=inside)


class ModelNew(torch.nn.Module):
    def __init__(self, rate, decay, beta1, beta2):
        super().__init__()
        self.rate, self.decay = rate, decay
        self.beta1, self.beta2 = beta1, beta2

    def forward(self, weights, gradient, first, second, step):
        weights, gradient = weights.contiguous(), gradient.contiguous()
        first, second = first.contiguous(), second.contiguous()
        outputs = [torch.empty_like(weights) for _ in range(3)]
        short_weights = torch.empty_like(gradient)
        count = weights.numel()
        block = 1024 if count > 1 << 20 else 256
        adamw[(triton.cdiv(count, block),)](
            weights, gradient, first, second, *outputs, short_weights, count,
            self.beta1, 1 - self.beta1, self.beta2, 1 - self.beta2, 1 - self.rate * self.decay,
            self.rate / (1 - self.beta1**step), 1 / (1 - self.beta2**step),
            BLOCK=block, EVEN=count % block == 0, num_warps=4 if block == 1024 else 2,
        )
        return (*outputs, short_weights)
