"""Copies both caches and takes the new row where it belongs."""

import torch
import triton
import triton.language as tl


@triton.jit
def write(
    keys, values, new_key, new_value, lengths, out_keys, out_values, capacity, row_size,
    BLOCK: tl.constexpr,
):
    request = tl.program_id(1).to(tl.int64)
    flat = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    exists = flat < capacity * row_size
    at = request * capacity * row_size + flat
    is_new = exists & (flat // row_size == tl.load(lengths + request))
    fresh = request * row_size + flat % row_size
    key = tl.load(keys + at, mask=exists, other=0.0)
    value = tl.load(values + at, mask=exists, other=0.0)
    key = tl.where(is_new, tl.load(new_key + fresh, mask=is_new, other=0.0), key)
    value = tl.where(is_new, tl.load(new_value + fresh, mask=is_new, other=0.0), value)
    tl.store(out_keys + at, key, mask=exists)
    tl.store(out_values + at, value, mask=exists)


class ModelNew(torch.nn.Module):
    def forward(self, keys, values, new_key, new_value, lengths):
        keys, values = keys.contiguous(), values.contiguous()
        new_key, new_value = new_key.contiguous(), new_value.contiguous()
        batch, capacity, heads, features = keys.shape
        out_keys, out_values = torch.empty_like(keys), torch.empty_like(values)
        row_size = heads * features
        write[(triton.cdiv(capacity * row_size, 2048), batch)](
            keys, values, new_key, new_value, lengths.contiguous(), out_keys, out_values,
            capacity, row_size, BLOCK=2048, num_warps=8,
        )
        return out_keys, out_values
