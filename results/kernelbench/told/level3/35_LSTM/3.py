"""All layers run at once, each one step behind the one below it: one kernel per diagonal, in which a program computes
16 hidden units of one layer, all four gates as one product, whose inner dimension is spread over the warps. Nothing
waits inside a kernel. The projection of the first layer's inputs is one product. States that
are not given are drawn as PyTorch draws them."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def four(sums, ROWS: tl.constexpr, UNITS: tl.constexpr):
    """Take [ROWS, 4 * UNITS] apart."""
    pairs = tl.permute(tl.reshape(sums, (ROWS, 2, 2, UNITS)), (0, 3, 1, 2))
    even, odd = tl.split(pairs)
    first, third = tl.split(even)
    second, fourth = tl.split(odd)
    return first, second, third, fourth


@triton.jit
def tanh(x):
    return 1.0 - 2.0 / (tl.exp(2.0 * x) + 1.0)


@triton.jit(do_not_specialize=["diagonal"])
def lstm_diagonal(
    diagonal, gates, w_ih, w_hh, b_ih, b_hh, h0, c0, states, h_n, c_n, batch, steps,
    H: tl.constexpr, UNITS: tl.constexpr, PIECES: tl.constexpr, ROWS: tl.constexpr,
):
    layer = tl.program_id(0) // (H // UNITS)
    start = (tl.program_id(0) % (H // UNITS)) * UNITS
    units = start + tl.arange(0, UNITS)
    gate = tl.arange(0, 4 * UNITS)
    gate = gate // UNITS * H + start + gate % UNITS
    row = tl.arange(0, ROWS)
    # A row of hidden states as PIECES parts: [PIECES, 1, H // PIECES] columns.
    k = tl.arange(0, PIECES)[:, None] * (H // PIECES) + tl.arange(0, H // PIECES)[None, :]
    whole = row[None, :, None] * H + k[:, None, :]
    known = (row < batch)[None, :, None] & (k >= 0)[:, None, :]
    own = row[:, None] * H + units[None, :]
    mine = (row < batch)[:, None] & (units < H)[None, :]

    above = layer * 4 * H + gate
    below = tl.maximum(layer - 1, 0) * 4 * H + gate
    w_h = tl.load(w_hh + above[None, None, :] * H + k[:, :, None])
    w_x = tl.load(w_ih + below[None, None, :] * H + k[:, :, None])
    bias = tl.load(b_ih + above) + tl.load(b_hh + above)

    t = diagonal - layer
    if (t >= 0) & (t < steps):
        # Before the first step c_n is unset; afterwards it holds the cells.
        before = h0 + layer * batch * H + whole
        cells = c0 + layer * batch * H + own
        if t > 0:
            before = states + (layer * steps + t - 1) * batch * H + whole
            cells = c_n + layer * batch * H + own
        h = tl.load(before, mask=known, other=0.0)
        c = tl.load(cells, mask=mine, other=0.0)
        sums = tl.dot(h, w_h, input_precision="tf32")
        if layer == 0:
            given = gates + (row[:, None] * steps + t) * 4 * H + gate[None, :]
            known_gates = tl.load(given, mask=(row < batch)[:, None], other=0.0)
        else:
            x = tl.load(states + ((layer - 1) * steps + t) * batch * H + whole, mask=known, other=0.0)
            sums = tl.dot(x, w_x, sums, input_precision="tf32")
            known_gates = tl.zeros((ROWS, 4 * UNITS), tl.float32)
        i, f, g, o = four(tl.sum(sums, 0) + known_gates + bias[None, :], ROWS, UNITS)
        c = tl.sigmoid(f) * c + tl.sigmoid(i) * tanh(g)
        h_new = tl.sigmoid(o) * tanh(c)
        tl.store(states + (layer * steps + t) * batch * H + own, h_new, mask=mine)
        tl.store(c_n + layer * batch * H + own, c, mask=mine)
        if t == steps - 1:
            tl.store(h_n + layer * batch * H + own, h_new, mask=mine)


def last_states(lstm, x, h0, c0, units):
    layers, hidden = lstm.num_layers, lstm.hidden_size
    batch, steps, _ = x.shape
    w_ih = torch.cat([getattr(lstm, f"weight_ih_l{n}") for n in range(1, layers)])
    w_hh = torch.cat([getattr(lstm, f"weight_hh_l{n}") for n in range(layers)])
    b_ih = torch.cat([getattr(lstm, f"bias_ih_l{n}") for n in range(layers)])
    b_hh = torch.cat([getattr(lstm, f"bias_hh_l{n}") for n in range(layers)])
    gates = F.linear(x, lstm.weight_ih_l0)
    states = x.new_empty(layers, steps, batch, hidden)
    h_n, c_n = torch.empty_like(h0), torch.empty_like(c0)
    for diagonal in range(layers + steps - 1):
        lstm_diagonal[(layers * (hidden // units),)](
            diagonal, gates, w_ih, w_hh, b_ih, b_hh, h0, c0, states, h_n, c_n, batch, steps,
            H=hidden, UNITS=units, PIECES=8, ROWS=16, num_warps=8, num_stages=1,
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
