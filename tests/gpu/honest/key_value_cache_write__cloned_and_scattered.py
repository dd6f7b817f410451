"""The library copies the caches at full bandwidth; a tiny kernel scatters the new rows."""

import torch
import triton
import triton.language as tl


@triton.jit
def scatter(new, lengths, cache, capacity, row_size, BLOCK: tl.constexpr):
    request = tl.program_id(0).to(tl.int64)
    c = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    row = request * capacity + tl.load(lengths + request)
    fresh = tl.load(new + request * row_size + c, mask=c < row_size, other=0.0)
    tl.store(cache + row * row_size + c, fresh, mask=c < row_size)


class ModelNew(torch.nn.Module):
    def forward(self, keys, values, new_key, new_value, lengths):
        batch, capacity, heads, features = keys.shape
        outputs = []
        for cache, new in ((keys, new_key), (values, new_value)):
            copy = cache.clone(memory_format=torch.contiguous_format)
            row_size = heads * features
            scatter[(batch, triton.cdiv(row_size, 256))](
                new.contiguous(), lengths, copy, capacity, row_size, BLOCK=256, num_warps=2
            )
            outputs.append(copy)
        return tuple(outputs)
