"""All layers run at once, each some steps behind the one below it, in one persistent kernel. A program owns 16
hidden units of one layer and keeps their weights on the chip for all steps. Hidden states travel through a buffer
that starts out filled with a bit pattern which no arithmetic yields: a program waits until none of it is left in
the row that it reads, so that values announce themselves and no barrier is needed. The projection of the first
layer's inputs is one product. States that are not given are drawn as PyTorch draws them."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

UNSET = 0x7FC0DEAD  # a NaN; those that are computed are 0x7FFFFFFF


@triton.jit
def arrived(at, inside, UNSET: tl.constexpr):
    bits = tl.load(at, mask=inside, other=0, volatile=True)
    while tl.sum((bits == UNSET).to(tl.int32)) > 0:
        bits = tl.load(at, mask=inside, other=0, volatile=True)
    return bits.to(tl.float32, bitcast=True)


@triton.jit
def columns_of(w, first, units, k, H: tl.constexpr):
    return tl.load(w + (first + units)[None, None, :] * H + k[:, :, None])


@triton.jit
def tanh(x):
    return 1.0 - 2.0 / (tl.exp(2.0 * x) + 1.0)


@triton.jit
def lstm_layers(
    gates, w_ih, w_hh, b_ih, b_hh, h0, c0, states, h_n, c_n, batch, steps,
    H: tl.constexpr, UNITS: tl.constexpr, PIECES: tl.constexpr, ROWS: tl.constexpr,
    UNSET: tl.constexpr,
):
    layer = tl.program_id(0) // (H // UNITS)
    units = (tl.program_id(0) % (H // UNITS)) * UNITS + tl.arange(0, UNITS)
    row = tl.arange(0, ROWS)
    # A row of hidden states as PIECES parts: [PIECES, 1, H // PIECES] columns.
    k = tl.arange(0, PIECES)[:, None] * (H // PIECES) + tl.arange(0, H // PIECES)[None, :]
    whole = row[None, :, None] * H + k[:, None, :]
    known = (row < batch)[None, :, None] & (k >= 0)[:, None, :]
    own = row[:, None] * H + units[None, :]
    mine = (row < batch)[:, None] & (units < H)[None, :]

    above = layer * 4 * H
    hi = columns_of(w_hh, above, units, k, H)
    hf = columns_of(w_hh, above + H, units, k, H)
    hg = columns_of(w_hh, above + 2 * H, units, k, H)
    ho = columns_of(w_hh, above + 3 * H, units, k, H)
    below = tl.maximum(layer - 1, 0) * 4 * H
    xi = columns_of(w_ih, below, units, k, H)
    xf = columns_of(w_ih, below + H, units, k, H)
    xg = columns_of(w_ih, below + 2 * H, units, k, H)
    xo = columns_of(w_ih, below + 3 * H, units, k, H)
    bi = tl.load(b_ih + above + units) + tl.load(b_hh + above + units)
    bf = tl.load(b_ih + above + H + units) + tl.load(b_hh + above + H + units)
    bg = tl.load(b_ih + above + 2 * H + units) + tl.load(b_hh + above + 2 * H + units)
    bo = tl.load(b_ih + above + 3 * H + units) + tl.load(b_hh + above + 3 * H + units)

    h = tl.load(h0 + layer * batch * H + whole, mask=known, other=0.0)
    c = tl.load(c0 + layer * batch * H + own, mask=mine, other=0.0)
    last = c
    for t in range(steps):
        if layer == 0:
            at = gates + (row[:, None] * steps + t) * 4 * H + units[None, :]
            i = tl.load(at, mask=mine, other=0.0)
            f = tl.load(at + H, mask=mine, other=0.0)
            g = tl.load(at + 2 * H, mask=mine, other=0.0)
            o = tl.load(at + 3 * H, mask=mine, other=0.0)
        else:
            x = arrived(states + ((layer - 1) * steps + t) * batch * H + whole, known, UNSET)
            i = tl.sum(tl.dot(x, xi, input_precision="tf32"), 0)
            f = tl.sum(tl.dot(x, xf, input_precision="tf32"), 0)
            g = tl.sum(tl.dot(x, xg, input_precision="tf32"), 0)
            o = tl.sum(tl.dot(x, xo, input_precision="tf32"), 0)
        if t > 0:
            h = arrived(states + (layer * steps + t - 1) * batch * H + whole, known, UNSET)
        i += tl.sum(tl.dot(h, hi, input_precision="tf32"), 0) + bi[None, :]
        f += tl.sum(tl.dot(h, hf, input_precision="tf32"), 0) + bf[None, :]
        g += tl.sum(tl.dot(h, hg, input_precision="tf32"), 0) + bg[None, :]
        o += tl.sum(tl.dot(h, ho, input_precision="tf32"), 0) + bo[None, :]
        c = tl.sigmoid(f) * c + tl.sigmoid(i) * tanh(g)
        last = tl.sigmoid(o) * tanh(c)
        at = states + (layer * steps + t) * batch * H + own
        tl.store(at, last.to(tl.int32, bitcast=True), mask=mine)
    tl.store(h_n + layer * batch * H + own, last, mask=mine)
    tl.store(c_n + layer * batch * H + own, c, mask=mine)


def last_states(lstm, x, h0, c0, units):
    layers, hidden = lstm.num_layers, lstm.hidden_size
    batch, steps, _ = x.shape
    w_ih = torch.cat([getattr(lstm, f"weight_ih_l{n}") for n in range(1, layers)])
    w_hh = torch.cat([getattr(lstm, f"weight_hh_l{n}") for n in range(layers)])
    b_ih = torch.cat([getattr(lstm, f"bias_ih_l{n}") for n in range(layers)])
    b_hh = torch.cat([getattr(lstm, f"bias_hh_l{n}") for n in range(layers)])
    gates = F.linear(x, lstm.weight_ih_l0)
    states = torch.full((layers, steps, batch, hidden), UNSET, dtype=torch.int32, device=x.device)
    h_n, c_n = torch.empty_like(h0), torch.empty_like(c0)
    lstm_layers[(layers * (hidden // units),)](
        gates, w_ih, w_hh, b_ih, b_hh, h0, c0, states, h_n, c_n, batch, steps,
        H=hidden, UNITS=units, PIECES=8, ROWS=16, UNSET=UNSET, num_warps=8, num_stages=1,
    )
    return h_n, c_n


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
        last = last_states(self.lstm, x.contiguous(), h0, c0, UNITS)[0][-1]
        return F.linear(last, self.fc.weight, self.fc.bias)


UNITS = 16
