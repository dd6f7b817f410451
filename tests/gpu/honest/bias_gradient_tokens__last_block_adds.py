"""One kernel: the program that finishes last in its strip adds the sections of all. A counter per
strip tells who that is; it lives from call to call and is set back by the one who adds."""

import torch
import triton
import triton.language as tl


@triton.jit
def sum_rows(
    x, partial, out, finished, rows, columns, section, sections,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, SECTIONS: tl.constexpr,
):
    strip, part = tl.program_id(0), tl.program_id(1)
    c = strip * COLUMNS + tl.arange(0, COLUMNS)
    first = part * section
    last = tl.minimum(first + section, rows)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for start in range(first, last, ROWS):
        r = start + tl.arange(0, ROWS)
        at = x + r.to(tl.int64)[:, None] * columns + c[None, :]
        inside = (r < last)[:, None] & (c < columns)[None, :]
        total += tl.load(at, mask=inside, other=0.0).to(tl.float32)
    tl.store(partial + part * columns + c, tl.sum(total, 0), mask=c < columns)
    # All stores of this program come before its turn is counted.
    tl.debug_barrier()
    turn = tl.atomic_add(finished + strip, 1, sem="acq_rel")
    if turn == sections - 1:
        s = tl.arange(0, SECTIONS)
        at = partial + s[:, None] * columns + c[None, :]
        inside = (s < sections)[:, None] & (c < columns)[None, :]
        sums = tl.load(at, mask=inside, other=0.0, cache_modifier=".cg")
        tl.store(out + c, tl.sum(sums, 0), mask=c < columns)
        tl.store(finished + strip, 0)


class ModelNew(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.counters = {}

    def forward(self, gradient):
        gradient = gradient.contiguous()
        rows, columns = gradient.shape
        width = 64
        strips = triton.cdiv(columns, width)
        sections = max(1, min(triton.cdiv(rows, 64), 528 // strips, 128))
        section = triton.cdiv(rows, sections)
        key = (gradient.device, strips)
        if key not in self.counters:
            self.counters[key] = torch.zeros(strips, dtype=torch.int32, device=gradient.device)
        partial = torch.empty(sections, columns, dtype=torch.float32, device=gradient.device)
        out = torch.empty(columns, dtype=torch.float32, device=gradient.device)
        sum_rows[(strips, sections)](
            gradient, partial, out, self.counters[key], rows, columns, section, sections,
            ROWS=32, COLUMNS=width, SECTIONS=triton.next_power_of_2(sections),
        )
        return out
