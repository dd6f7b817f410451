"""As 1.py, but tokens are normalised once before the MLP, not again by each of the programs that multiply them: the
products read what they need without touching it, so that tensor cores are fed from shared memory as it arrives."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl


@triton.jit
def embed(
    x, w, b, weight, bias, y, M, side, across, eps,
    N: tl.constexpr, BM: tl.constexpr, BN: tl.constexpr,
):
    """4 x 4 patches of three channels, and the layer norm after them."""
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.arange(0, BN)
    k = tl.arange(0, 64)
    image = r // (across * across)
    corner = image * 3 * side * side + (r // across) % across * 4 * side + r % across * 4
    tap = k // 16 * side * side + k // 4 % 4 * side + k % 4
    inside = (r < M)[:, None] & (k < 48)[None, :]
    v = tl.load(x + corner[:, None] + tap[None, :], mask=inside, other=0.0)
    weights = tl.load(w + n[None, :] * 48 + k[:, None], mask=(n < N)[None, :] & (k < 48)[:, None], other=0.0)
    v = tl.dot(v, weights, input_precision="tf32") + tl.load(b + n, mask=n < N, other=0.0)[None, :]
    away = tl.where((n < N)[None, :], v - (tl.sum(v, 1) / N)[:, None], 0.0)
    v = away / tl.sqrt(tl.sum(away * away, 1) / N + eps)[:, None]
    v = v * tl.load(weight + n, mask=n < N, other=0.0)[None, :] + tl.load(bias + n, mask=n < N, other=0.0)[None, :]
    tl.store(y + r[:, None] * N + n[None, :], v, mask=(r < M)[:, None] & (n < N)[None, :])


@triton.jit
def row_statistics(x, mean, factor, M, eps, C: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, BC)
    inside = (r < M)[:, None] & (c < C)[None, :]
    v = tl.load(x + r[:, None] * C + c[None, :], mask=inside, other=0.0)
    middle = tl.sum(v, 1) / C
    away = tl.where(inside, v - middle[:, None], 0.0)
    tl.store(mean + r, middle, mask=r < M)
    tl.store(factor + r, 1.0 / tl.sqrt(tl.sum(away * away, 1) / C + eps), mask=r < M)


@triton.jit
def normalise_rows(x, weight, bias, y, M, eps, C: tl.constexpr, BM: tl.constexpr, BC: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, BC)
    inside = (r < M)[:, None] & (c < C)[None, :]
    v = tl.load(x + r[:, None] * C + c[None, :], mask=inside, other=0.0)
    away = tl.where(inside, v - (tl.sum(v, 1) / C)[:, None], 0.0)
    away = away / tl.sqrt(tl.sum(away * away, 1) / C + eps)[:, None]
    factor = tl.load(weight + c, mask=c < C, other=0.0)[None, :]
    v = away * factor + tl.load(bias + c, mask=c < C, other=0.0)[None, :]
    tl.store(y + r[:, None] * C + c[None, :], v, mask=inside)


@triton.jit
def mix_window(
    x, mean, factor, weight, bias, w, b, y, side, windows, before,
    C: tl.constexpr, D: tl.constexpr, S: tl.constexpr, BT: tl.constexpr,
):
    """One window and head; windows begin `before` places above and left of the map."""
    window, head = tl.program_id(0), tl.program_id(1)
    image = window // (windows * windows)
    t = tl.arange(0, BT)
    i = window // windows % windows * S - before + t // S
    j = window % windows * S - before + t % S
    there = (i >= 0) & (i < side) & (j >= 0) & (j < side) & (t < S * S)
    row = (image * side + i) * side + j
    d = tl.arange(0, D)
    c = head * D + d
    at = row[:, None] * C + c[None, :]
    v = tl.load(x + at, mask=there[:, None], other=0.0)
    middle = tl.load(mean + row, mask=there, other=0.0)[:, None]
    scale = tl.load(factor + row, mask=there, other=0.0)[:, None]
    z = (v - middle) * scale * tl.load(weight + c)[None, :] + tl.load(bias + c)[None, :]
    z = tl.where(there[:, None], z, 0.0)
    o = head * S * S + t
    inside = (t < S * S)[:, None] & (t < S * S)[None, :]
    mixer = tl.load(w + o[:, None] * (S * S) + t[None, :], mask=inside, other=0.0)
    total = tl.dot(mixer, z, input_precision="tf32")
    total += tl.load(b + o, mask=t < S * S, other=0.0)[:, None] + v
    tl.store(y + at, total, mask=there[:, None])


@triton.jit
def linear(
    x, w, b, shortcut, y, M,
    K: tl.constexpr, N: tl.constexpr, FIRST: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):
    """The first layer of the MLP, before GELU, or the second, with the shortcut."""
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        k = start + tl.arange(0, BK)
        v = tl.load(x + r[:, None] * K + k[None, :], mask=(r < M)[:, None], other=0.0)
        weights = tl.load(w + n[None, :] * K + k[:, None], mask=(n < N)[None, :], other=0.0)
        total = tl.dot(v, weights, total, input_precision="tf32")
    total += tl.load(b + n, mask=n < N, other=0.0)[None, :]
    at = r[:, None] * N + n[None, :]
    inside = (r < M)[:, None] & (n < N)[None, :]
    if FIRST:
        total = 0.5 * total * (1.0 + tl.erf(total * 0.7071067811865476))
    else:
        total += tl.load(shortcut + at, mask=inside, other=0.0)
    tl.store(y + at, total, mask=inside)


@triton.jit
def merge(x, weight, bias, y, side, eps, C: tl.constexpr, BC: tl.constexpr):
    """Join 2 x 2 tokens and normalise them together."""
    r = tl.program_id(0)
    half = side // 2
    c = tl.arange(0, BC)
    part, channel = c // C, c % C
    at = (r // half * 2 + part % 2) * side + r % half * 2 + part // 2
    v = tl.load(x + at * C + channel, mask=c < 4 * C, other=0.0)
    away = tl.where(c < 4 * C, v - tl.sum(v, 0) / (4 * C), 0.0)
    v = away / tl.sqrt(tl.sum(away * away, 0) / (4 * C) + eps)
    v = v * tl.load(weight + c, mask=c < 4 * C, other=0.0) + tl.load(bias + c, mask=c < 4 * C, other=0.0)
    tl.store(y + r * 4 * C + c, v, mask=c < 4 * C)


@triton.jit
def average(x, mean, factor, weight, bias, y, tokens, C: tl.constexpr, BT: tl.constexpr, BC: tl.constexpr):
    image = tl.program_id(0)
    c = tl.program_id(1) * BC + tl.arange(0, BC)
    t = tl.arange(0, BT)
    row = image * tokens + t
    v = tl.load(x + row[:, None] * C + c[None, :], mask=(t < tokens)[:, None], other=0.0)
    middle = tl.load(mean + row, mask=t < tokens, other=0.0)[:, None]
    scale = tl.load(factor + row, mask=t < tokens, other=0.0)[:, None]
    v = tl.sum((v - middle) * scale, 0) / tokens
    tl.store(y + image * C + c, v * tl.load(weight + c) + tl.load(bias + c))


def statistics(x, eps):
    rows, channels = x.shape
    mean, factor = x.new_empty(2, rows)
    row_statistics[(triton.cdiv(rows, 8),)](
        x, mean, factor, rows, eps, C=channels, BM=8, BC=triton.next_power_of_2(channels), num_warps=4
    )
    return mean, factor


class SwinMLPBlock(torch.nn.Module):
    def __init__(self, dim, side, heads, window, shift):
        super().__init__()
        nn = torch.nn
        if side <= window:
            shift, window = 0, side
        self.side, self.heads, self.window, self.shift = side, heads, window, shift
        self.norm1 = nn.LayerNorm(dim)
        self.spatial_mlp = nn.Conv1d(heads * window**2, heads * window**2, kernel_size=1, groups=heads)
        self.norm2 = nn.LayerNorm(dim)
        self.mlp = nn.ModuleDict({"fc1": nn.Linear(dim, 4 * dim), "fc2": nn.Linear(4 * dim, dim)})

    def forward(self, x):
        rows, channels = x.shape
        before = self.window - self.shift if self.shift else 0
        windows = self.side // self.window + (1 if self.shift else 0)
        images = rows // self.side**2
        norm, mixer = self.norm1, self.spatial_mlp
        mean, factor = statistics(x, norm.eps)
        mixed = torch.empty_like(x)
        mix_window[(images * windows**2, self.heads)](
            x, mean, factor, norm.weight, norm.bias, mixer.weight, mixer.bias, mixed, self.side, windows, before,
            C=channels, D=channels // self.heads, S=self.window,
            BT=max(16, triton.next_power_of_2(self.window**2)), num_warps=4,
        )
        norm, fc1, fc2 = self.norm2, self.mlp["fc1"], self.mlp["fc2"]
        z = torch.empty_like(x)
        normalise_rows[(triton.cdiv(rows, 8),)](
            mixed, norm.weight, norm.bias, z, rows, norm.eps,
            C=channels, BM=8, BC=triton.next_power_of_2(channels), num_warps=4,
        )
        bm = 128 if rows > 4096 else 64
        hidden = x.new_empty(rows, fc1.out_features)
        linear[(triton.cdiv(rows, bm), triton.cdiv(fc1.out_features, 128))](
            z, fc1.weight, fc1.bias, mixed, hidden, rows,
            K=channels, N=fc1.out_features, FIRST=True, BM=bm, BN=128, BK=32, num_warps=bm // 16, num_stages=3,
        )
        y = torch.empty_like(x)
        bn = 128 if channels <= 128 else 64 if rows > 1024 else 32
        linear[(triton.cdiv(rows, bm), triton.cdiv(channels, bn))](
            hidden, fc2.weight, fc2.bias, mixed, y, rows,
            K=fc2.in_features, N=channels, FIRST=False, BM=bm, BN=bn, BK=32, num_warps=8 if bn == 128 else 4, num_stages=4,
        )
        return y


class PatchMerging(torch.nn.Module):
    def __init__(self, side, dim):
        super().__init__()
        self.side = side
        self.reduction = torch.nn.Linear(4 * dim, 2 * dim, bias=False)
        self.norm = torch.nn.LayerNorm(4 * dim)

    def forward(self, x):
        rows, channels = x.shape
        merged = x.new_empty(rows // 4, 4 * channels)
        merge[(rows // 4,)](
            x, self.norm.weight, self.norm.bias, merged, self.side, self.norm.eps,
            C=channels, BC=triton.next_power_of_2(4 * channels), num_warps=4,
        )
        return F.linear(merged, self.reduction.weight)


class BasicLayer(torch.nn.Module):
    def __init__(self, dim, side, depth, heads, window, merges):
        super().__init__()
        self.blocks = torch.nn.ModuleList(
            SwinMLPBlock(dim, side, heads, window, 0 if n % 2 == 0 else window // 2) for n in range(depth)
        )
        self.downsample = PatchMerging(side, dim) if merges else None

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return x if self.downsample is None else self.downsample(x)


class PatchEmbed(torch.nn.Module):
    def __init__(self, dim):
        super().__init__()
        self.proj = torch.nn.Conv2d(3, dim, kernel_size=4, stride=4)
        self.norm = torch.nn.LayerNorm(dim)

    def forward(self, x):
        images, _, side, _ = x.shape
        across, dim = side // 4, self.proj.out_channels
        y = x.new_empty(images * across**2, dim)
        embed[(triton.cdiv(y.shape[0], 64),)](
            x, self.proj.weight, self.proj.bias, self.norm.weight, self.norm.bias, y, y.shape[0], side, across,
            self.norm.eps, N=dim, BM=64, BN=triton.next_power_of_2(dim), num_warps=4,
        )
        return y


class ModelNew(torch.nn.Module):
    def __init__(
        self, img_size=224, patch_size=4, in_chans=3, num_classes=1000, embed_dim=96, depths=(2, 2, 6, 2),
        num_heads=(3, 6, 12, 24), window_size=7,
    ):
        super().__init__()
        self.patch_embed = PatchEmbed(embed_dim)
        self.layers = torch.nn.ModuleList(
            BasicLayer(
                embed_dim * 2**n, img_size // patch_size // 2**n, depth, heads, window_size, n < len(depths) - 1
            )
            for n, (depth, heads) in enumerate(zip(depths, num_heads))
        )
        width = embed_dim * 2 ** (len(depths) - 1)
        self.norm = torch.nn.LayerNorm(width)
        self.head = torch.nn.Linear(width, num_classes)

    @torch.no_grad()
    def forward(self, x):
        images = x.shape[0]
        x = self.patch_embed(x.contiguous())
        for layer in self.layers:
            x = layer(x)
        rows, width = x.shape
        tokens = rows // images
        mean, factor = statistics(x, self.norm.eps)
        pooled = x.new_empty(images, width)
        average[(images, width // 64)](
            x, mean, factor, self.norm.weight, self.norm.bias, pooled, tokens,
            C=width, BT=triton.next_power_of_2(tokens), BC=64, num_warps=4,
        )
        return F.linear(pooled, self.head.weight, self.head.bias)
