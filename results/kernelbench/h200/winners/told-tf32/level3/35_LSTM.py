"""As 4.py, but launched as a grid whose programs wait for one another: the driver starts all of them together, or refuses."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

UNSET = -(2**31)  # the bits of -0.0
UNITS, PARTS = 16, 8
STEPS_AT_ONCE = 2**30  # by single steps it needs no programs side by side


@triton.jit
def tanh(x):
    return 1.0 - 2.0 / (tl.exp(2.0 * x) + 1.0)


@triton.jit
def nearest(x):
    """Round to what TF32 holds; tensor cores would cut the rest off."""
    return ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def arrived(bits, at, inside, UNSET: tl.constexpr):
    """Load again until nothing is unset."""
    while tl.min(bits) == UNSET:
        bits = tl.load(at, mask=inside, other=0, volatile=True)
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def joined(parts, ROWS: tl.constexpr, UNITS: tl.constexpr, PARTS: tl.constexpr):
    """Add up the parts of [PARTS, ROWS, 4 * UNITS] and take the four columns of each unit apart."""
    x = tl.reshape(tl.permute(parts, (1, 2, 0)), (ROWS, UNITS, 2, 2, PARTS))
    if PARTS == 8:
        even, odd = tl.split(tl.reshape(x, (ROWS, UNITS, 2, 2, 4, 2)))
        x = even + odd
    even, odd = tl.split(tl.reshape(x, (ROWS, UNITS, 2, 2, 2, 2)))
    even, odd = tl.split(even + odd)
    even, odd = tl.split(even + odd)
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def lstm_layers(
    w_ih, w_hh, b_ih, b_hh, h0, c0, states, h_n, c_n, batch, steps, begin, end,
    H: tl.constexpr, UNITS: tl.constexpr, PARTS: tl.constexpr, ROWS: tl.constexpr, UNSET: tl.constexpr,
):
    layer = tl.program_id(0) // (H // UNITS)
    start = (tl.program_id(0) % (H // UNITS)) * UNITS
    units = start + tl.arange(0, UNITS)
    column = tl.arange(0, 4 * UNITS)
    gate = layer * 4 * H + column % 4 * H + start + column // 4
    row = tl.arange(0, ROWS)
    # A row of states in PARTS parts, one for each warp.
    k = tl.arange(0, PARTS)[:, None] * (H // PARTS) + tl.arange(0, H // PARTS)[None, :]
    whole = row[None, :, None] * H + k[:, None, :]
    known = (row < batch)[None, :, None] & (k >= 0)[:, None, :]
    own = row[:, None] * H + units[None, :]
    mine = (row < batch)[:, None] & (units < H)[None, :]

    w_h = nearest(tl.load(w_hh + gate[None, None, :] * H + k[:, :, None]))
    w_x = nearest(tl.load(w_ih + gate[None, None, :] * H + k[:, :, None]))
    bias = layer * 4 * H + units
    b_i = tl.load(b_ih + bias) + tl.load(b_hh + bias)
    b_f = tl.load(b_ih + bias + H) + tl.load(b_hh + bias + H)
    b_g = tl.load(b_ih + bias + 2 * H) + tl.load(b_hh + bias + 2 * H)
    b_o = tl.load(b_ih + bias + 3 * H) + tl.load(b_hh + bias + 3 * H)

    lower = states + layer * steps * batch * H
    upper = lower + steps * batch * H
    if begin == 0:
        h = tl.load(h0 + layer * batch * H + whole, mask=known, other=0.0)
        c = tl.load(c0 + layer * batch * H + own, mask=mine, other=0.0)
    else:
        h = tl.load(upper + (begin - 1) * batch * H + whole, mask=known, other=0).to(tl.float32, bitcast=True)
        c = tl.load(c_n + layer * batch * H + own, mask=mine, other=0.0)
    at = lower + begin * batch * H + whole
    x = arrived(tl.load(at, mask=known, other=0, volatile=True), at, known, UNSET)
    at = lower + tl.minimum(begin + 1, end - 1) * batch * H + whole
    ahead = tl.load(at, mask=known, other=0, volatile=True)
    sums = tl.dot(x, w_x, input_precision="tf32")
    sums = tl.dot(h, w_h, sums, input_precision="tf32")
    last = c
    for t in range(begin, end):
        i, f, g, o = joined(sums, ROWS, UNITS, PARTS)
        c = tl.sigmoid(f + b_f[None, :]) * c + tl.sigmoid(i + b_i[None, :]) * tanh(g + b_g[None, :])
        last = tl.sigmoid(o + b_o[None, :]) * tanh(c) + 0.0  # no -0.0
        tl.store(upper + t * batch * H + own, last.to(tl.int32, bitcast=True), mask=mine)
        if t + 1 < end:
            x = arrived(ahead, lower + (t + 1) * batch * H + whole, known, UNSET)
            at = lower + tl.minimum(t + 2, end - 1) * batch * H + whole
            ahead = tl.load(at, mask=known, other=0, volatile=True)
            sums = tl.dot(x, w_x, input_precision="tf32")
            at = upper + t * batch * H + whole
            h = arrived(tl.load(at, mask=known, other=0, volatile=True), at, known, UNSET)
            sums = tl.dot(h, w_h, sums, input_precision="tf32")
    tl.store(h_n + layer * batch * H + own, last, mask=mine)
    tl.store(c_n + layer * batch * H + own, c, mask=mine)


def last_state(lstm, x, h0, c0):
    layers, hidden, width = lstm.num_layers, lstm.hidden_size, lstm.input_size
    batch, steps, _ = x.shape
    first = F.pad(lstm.weight_ih_l0, (0, hidden - width))
    w_ih = torch.cat([first] + [getattr(lstm, f"weight_ih_l{n}") for n in range(1, layers)])
    w_hh = torch.cat([getattr(lstm, f"weight_hh_l{n}") for n in range(layers)])
    b_ih = torch.cat([getattr(lstm, f"bias_ih_l{n}") for n in range(layers)])
    b_hh = torch.cat([getattr(lstm, f"bias_hh_l{n}") for n in range(layers)])
    # The input, widened by zeros, and below it what each layer makes of it.
    states = torch.full((layers + 1, steps, batch, hidden), UNSET, dtype=torch.int32, device=x.device)
    given = states[0].view(torch.float32)
    given[:, :, width:] = 0.0
    torch.add(x.transpose(0, 1), 0.0, out=given[:, :, :width])
    h_n, c_n = torch.empty_like(h0), torch.empty_like(c0)
    for begin in range(0, steps, STEPS_AT_ONCE):
        lstm_layers[(layers * (hidden // UNITS),)](
            w_ih, w_hh, b_ih, b_hh, h0, c0, states, h_n, c_n, batch, steps,
            begin, min(begin + STEPS_AT_ONCE, steps),
            H=hidden, UNITS=UNITS, PARTS=PARTS, ROWS=16, UNSET=UNSET, num_warps=PARTS, num_stages=1,
            launch_cooperative_grid=True,
        )
    return states[-1, -1].view(torch.float32)


class ModelNew(torch.nn.Module):
    def __init__(self, input_size, hidden_size, num_layers, output_size, dropout=0.0):
        super().__init__()
        self.lstm = torch.nn.LSTM(
            input_size, hidden_size, num_layers, batch_first=True, dropout=dropout, bidirectional=False
        )
        self.fc = torch.nn.Linear(hidden_size, output_size)

    @torch.no_grad()
    def forward(self, x, h0=None, c0=None):
        shape = self.lstm.num_layers, x.shape[0], self.lstm.hidden_size
        h0 = torch.randn(shape, device=x.device) if h0 is None else h0.contiguous()
        c0 = torch.randn(shape, device=x.device) if c0 is None else c0.contiguous()
        last = last_state(self.lstm, x.contiguous(), h0, c0)
        return F.linear(last, self.fc.weight, self.fc.bias)
