"""A row in registers; block and warps follow from the width by triton.heuristics."""

import torch
import triton
import triton.language as tl


@triton.heuristics(
    {
        "BLOCK": lambda args: triton.next_power_of_2(args["keys"]),
        "EVEN": lambda args: args["keys"] == triton.next_power_of_2(args["keys"]),
        "num_warps": lambda args: 16 if args["keys"] > 4096 else 8 if args["keys"] > 1024 else 4,
    }
)
@triton.jit
def sink_softmax(
    scores, sinks, out, keys, queries, heads, BLOCK: tl.constexpr, EVEN: tl.constexpr
):
    row = tl.program_id(0).to(tl.int64)
    sink = tl.load(sinks + (row // queries) % heads).to(tl.float32)
    c = tl.arange(0, BLOCK)
    if EVEN:
        v = tl.load(scores + row * keys + c).to(tl.float32)
    else:
        v = tl.load(scores + row * keys + c, mask=c < keys, other=-float("inf")).to(tl.float32)
    largest = tl.maximum(tl.max(v, 0), sink)
    powers = tl.exp(v - largest)
    total = tl.sum(powers, 0) + tl.exp(sink - largest)
    tl.store(out + row * keys + c, powers / total, mask=c < keys)


class ModelNew(torch.nn.Module):
    def __init__(self, heads, dtype):
        super().__init__()
        self.sinks = torch.nn.Parameter(torch.randn(heads, dtype=getattr(torch, dtype)) + 6)

    def forward(self, scores):
        scores = scores.contiguous()
        batch, heads, queries, keys = scores.shape
        out = torch.empty_like(scores)
        sink_softmax[(batch * heads * queries,)](scores, self.sinks, out, keys, queries, heads)
        return out
