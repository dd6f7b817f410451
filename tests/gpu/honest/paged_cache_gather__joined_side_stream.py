"""Keys on the caller's stream and values on another one, which is joined before forward returns."""

import torch
import triton
import triton.language as tl


@triton.jit
def gather(pool, table, lengths, out, pages, page_size, row_size, BLOCK: tl.constexpr):
    request = tl.program_id(1).to(tl.int64)
    position = tl.program_id(0)
    page = tl.load(table + request * pages + position // page_size)
    exists = position < tl.load(lengths + request)
    source = (page * page_size + position % page_size) * row_size
    target = (request * pages * page_size + position) * row_size
    for start in range(0, row_size, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(pool + source + c, mask=(c < row_size) & exists, other=0.0)
        tl.store(out + target + c, v, mask=c < row_size)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.side = None

    def forward(self, keys, values, page_table, lengths):
        keys, values = keys.contiguous(), values.contiguous()
        page_table, lengths = page_table.contiguous(), lengths.contiguous()
        batch, pages = page_table.shape
        page_size, heads, features = keys.shape[1:]
        shape = (batch, pages * page_size, heads, features)
        row_size = heads * features
        out_keys = torch.empty(shape, dtype=keys.dtype, device=keys.device)
        out_values = torch.empty(shape, dtype=values.dtype, device=values.device)

        def launch(pool, out):
            gather[(pages * page_size, batch)](
                pool, page_table, lengths, out, pages, page_size, row_size,
                BLOCK=min(1024, triton.next_power_of_2(row_size)),
            )

        if keys.device.type != "cuda":
            launch(keys, out_keys)
            launch(values, out_values)
            return out_keys, out_values
        if self.side is None:
            self.side = torch.cuda.Stream(device=keys.device)
        current = torch.cuda.current_stream(keys.device)
        self.side.wait_stream(current)
        with torch.cuda.stream(self.side):
            launch(values, out_values)
        launch(keys, out_keys)
        current.wait_stream(self.side)
        return out_keys, out_values
