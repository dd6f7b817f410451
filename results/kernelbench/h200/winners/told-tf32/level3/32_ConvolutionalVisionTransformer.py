"""As 1.py, but two images share the programs of the four heads, so that products are the tensor cores' (rounded to
nearest, since they would cut off), weights are asked for before a program waits for the others, and what it waits for
is found by one minimum; missing values are -0.0, which is never stored. The patch convolution takes a channel's taps
at a time, so that it waits three times and not 48 times for the image."""

import torch
import triton
import triton.language as tl

UNSET = -(2**31)  # the bits of -0.0
IMAGES = 2  # to a group of programs
STAGES_AT_ONCE = 2**30  # by single stages it needs no programs side by side


@triton.jit
def embed(
    x, w, b, projection, partial, images,
    C: tl.constexpr, SIDE: tl.constexpr, PATCH: tl.constexpr, E: tl.constexpr, ROWS: tl.constexpr,
):
    across: tl.constexpr = SIDE // PATCH
    patches: tl.constexpr = across * across
    taps: tl.constexpr = C * PATCH * PATCH
    e = tl.program_id(0) * 2
    image = tl.arange(0, ROWS)
    p = tl.arange(0, patches)
    n = tl.arange(0, E)
    inside = (image < images)[:, None] & (p >= 0)[None, :]
    corner = image[:, None] * (C * SIDE * SIDE) + ((p // across) * PATCH * SIDE + (p % across) * PATCH)[None, :]
    first = tl.zeros((ROWS, patches), tl.float32) + tl.load(b + e)
    second = tl.zeros((ROWS, patches), tl.float32) + tl.load(b + e + 1)
    for channel in range(C):
        for tap in tl.static_range(PATCH * PATCH):
            at = channel * SIDE * SIDE + (tap // PATCH) * SIDE + tap % PATCH
            v = tl.load(x + corner + at, mask=inside, other=0.0)
            first += v * tl.load(w + e * taps + channel * PATCH * PATCH + tap)
            second += v * tl.load(w + (e + 1) * taps + channel * PATCH * PATCH + tap)
    at = projection + n[None, :] * (E * patches) + e * patches + p[:, None]
    total = tl.dot(first, tl.load(at), input_precision="tf32")
    total = tl.dot(second, tl.load(at + patches), total, input_precision="tf32")
    at = partial + (tl.program_id(0) * images + image)[:, None] * E + n[None, :]
    tl.store(at, total, mask=(image < images)[:, None])


@triton.jit
def nearest(x):
    """Round to what TF32 holds."""
    return ((x.to(tl.int32, bitcast=True) + 0x1000) & -0x2000).to(tl.float32, bitcast=True)


@triton.jit
def times(a, b):
    return tl.dot(nearest(a), nearest(b), input_precision="tf32")


@triton.jit
def one_of_four(at, inside, PART: tl.constexpr):
    return tl.load(at + PART, mask=inside, other=0, volatile=True)


@triton.jit
def arrived(at, inside, PART: tl.constexpr, UNSET: tl.constexpr):
    """Wait for the parts of all four programs and add them up."""
    a = one_of_four(at, inside, 0)
    b = one_of_four(at, inside, PART)
    c = one_of_four(at, inside, 2 * PART)
    d = one_of_four(at, inside, 3 * PART)
    while tl.min(tl.minimum(tl.minimum(a, b), tl.minimum(c, d))) == UNSET:
        a = one_of_four(at, inside, 0)
        b = one_of_four(at, inside, PART)
        c = one_of_four(at, inside, 2 * PART)
        d = one_of_four(at, inside, 3 * PART)
    first = a.to(tl.float32, bitcast=True) + b.to(tl.float32, bitcast=True)
    return first + c.to(tl.float32, bitcast=True) + d.to(tl.float32, bitcast=True)


@triton.jit
def normalised(v, weight, bias, n, eps, E: tl.constexpr):
    away = v - (tl.sum(v, 1) / E)[:, None]
    away = away / tl.sqrt(tl.sum(away * away, 1) / E + eps)[:, None]
    return away * tl.load(weight + n)[None, :] + tl.load(bias + n)[None, :]


@triton.jit
def attended(q, own, other, own_value, other_value, scale):
    """Softmax over two keys: the weight of the first is a sigmoid of the difference."""
    weight = tl.sigmoid((tl.sum(q * own, 1) - tl.sum(q * other, 1)) * scale)[:, None]
    return weight * own_value + (1.0 - weight) * other_value


@triton.jit
def attention(qkv, scale, D: tl.constexpr):
    """Two tokens for each of eight images: [16, 4 * D], of which the last quarter is empty, to [16, D]."""
    x = tl.permute(tl.reshape(qkv, (8, 2, 2, 2, D)), (0, 4, 1, 2, 3))
    even, odd = tl.split(x)
    q, v = tl.split(even)
    k, _ = tl.split(odd)
    qa, qb = tl.split(q)
    ka, kb = tl.split(k)
    va, vb = tl.split(v)
    a = attended(qa, ka, kb, va, vb, scale)
    b = attended(qb, kb, ka, vb, va, scale)
    return tl.reshape(tl.permute(tl.join(a, b), (0, 2, 1)), (16, D))


@triton.jit
def transform(
    partial, projection_bias, token, layers, sums, kept, head_weight, head_bias, y, images, classes, count, scale, eps,
    begin, end,
    E: tl.constexpr, HEADS: tl.constexpr, HIDDEN: tl.constexpr, PARTS: tl.constexpr, IMAGES: tl.constexpr,
    BN: tl.constexpr, UNSET: tl.constexpr,
):
    D: tl.constexpr = E // HEADS
    J: tl.constexpr = HIDDEN // HEADS
    size: tl.constexpr = 4 * E * E + 2 * E * HIDDEN + 9 * E + HIDDEN
    PART: tl.constexpr = 2 * IMAGES * E
    group, head = tl.program_id(0) // HEADS, tl.program_id(0) % HEADS
    groups = tl.num_programs(0) // HEADS
    r = tl.arange(0, 16)  # two tokens of each image
    image = group * IMAGES + r // 2
    real = ((r < 2 * IMAGES) & (image < images))[:, None]
    n = tl.arange(0, E)
    places = r[:, None] * E + n[None, :]
    four = tl.arange(0, 4 * D)
    four = tl.minimum(four // D, 2) * E + head * D + four % D
    used = tl.arange(0, 4 * D) < 3 * D
    d = head * D + tl.arange(0, D)
    j = head * J + tl.arange(0, J)

    if begin == 0:
        state = tl.where(real & (r % 2 == 0)[:, None], tl.load(token + n)[None, :], 0.0)
        part = tl.arange(0, PARTS)
        for i in tl.static_range(IMAGES):
            inside = group * IMAGES + i < images
            at = partial + (part[:, None] * images + group * IMAGES + i) * E + n[None, :]
            b = tl.sum(tl.load(at, mask=(part >= 0)[:, None] & inside, other=0.0), 0) + tl.load(projection_bias + n)
            state = tl.where(real & (r == 2 * i + 1)[:, None], b[None, :], state)
    else:
        state = tl.load(kept + tl.program_id(0) * 16 * E + places)

    for stage in range(begin, tl.minimum(end, 2 * count)):
        in_w = layers + (stage // 2) * size
        in_b = in_w + 3 * E * E
        out_w = in_b + 3 * E
        out_b = out_w + E * E
        w1 = out_b + E
        b1 = w1 + HIDDEN * E
        w2 = b1 + HIDDEN
        b2 = w2 + HIDDEN * E
        norms = b2 + E
        before = sums + ((stage - 1) * groups + group) * HEADS * PART + places
        if stage % 2 == 0:
            w_in = tl.load(in_w + four[None, :] * E + n[:, None], mask=used[None, :], other=0.0)
            w_out = tl.load(out_w + n[None, :] * E + d[:, None])
            b_in = tl.load(in_b + four, mask=used, other=0.0)
            if stage > 0:
                state += arrived(before, real, PART, UNSET) + tl.load(b2 - size + n)[None, :]
                state = normalised(state, norms - size + 2 * E, norms - size + 3 * E, n, eps, E)
            total = times(attention(times(state, w_in) + b_in[None, :], scale, D), w_out)
        else:
            wide = tl.load(w1 + j[None, :] * E + n[:, None])
            narrow = tl.load(w2 + n[None, :] * HIDDEN + j[:, None])
            b_wide = tl.load(b1 + j)
            state += arrived(before, real, PART, UNSET) + tl.load(out_b + n)[None, :]
            state = normalised(state, norms, norms + E, n, eps, E)
            total = times(tl.maximum(times(state, wide) + b_wide[None, :], 0.0), narrow)
        at = sums + ((stage * groups + group) * HEADS + head) * PART + places
        tl.store(at, (total + 0.0).to(tl.int32, bitcast=True), mask=real)  # no -0.0

    if end > 2 * count:
        before = sums + ((2 * count - 1) * groups + group) * HEADS * PART + places
        last = layers + count * size
        state += arrived(before, real, PART, UNSET) + tl.load(last - 5 * E + n)[None, :]
        state = normalised(state, last - 2 * E, last - E, n, eps, E)
        for start in range(head * BN, classes, HEADS * BN):
            c = start + tl.arange(0, BN)
            w = tl.load(head_weight + c[None, :] * E + n[:, None], mask=(c < classes)[None, :], other=0.0)
            logits = times(state, w) + tl.load(head_bias + c, mask=c < classes, other=0.0)[None, :]
            inside = real & (r % 2 == 0)[:, None] & (c < classes)[None, :]
            tl.store(y + image[:, None] * classes + c[None, :], logits, mask=inside)
    else:
        tl.store(kept + tl.program_id(0) * 16 * E + places, state)


class ModelNew(torch.nn.Module):
    def __init__(
        self, num_classes, embed_dim=512, num_heads=8, num_layers=6,
        mlp_ratio=4.0, patch_size=4, in_channels=3, image_size=32,
    ):
        super().__init__()
        nn = torch.nn
        self.heads, self.patch_size, self.image_size = num_heads, patch_size, image_size
        self.hidden = int(embed_dim * mlp_ratio)
        self.conv1 = nn.Conv2d(in_channels, embed_dim, kernel_size=patch_size, stride=patch_size)
        patches = (image_size // patch_size) ** 2
        self.linear_proj = nn.Linear(embed_dim * patches, embed_dim)
        self.transformer_layers = nn.ModuleList(
            nn.TransformerEncoderLayer(embed_dim, num_heads, self.hidden, dropout=0.0, batch_first=True)
            for _ in range(num_layers)
        )
        self.cls_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.fc_out = nn.Linear(embed_dim, num_classes)

    @torch.no_grad()
    def forward(self, x):
        x = x.contiguous()
        images, channels, side, _ = x.shape
        width, classes, count = self.conv1.out_channels, self.fc_out.out_features, len(self.transformer_layers)
        partial = x.new_empty(width // 2, images, width)
        embed[(width // 2,)](
            x, self.conv1.weight, self.conv1.bias, self.linear_proj.weight, partial, images,
            C=channels, SIDE=side, PATCH=self.patch_size, E=width, ROWS=16, num_warps=4,
        )
        layers = torch.cat([
            p.flatten()
            for layer in self.transformer_layers
            for p in (
                layer.self_attn.in_proj_weight, layer.self_attn.in_proj_bias,
                layer.self_attn.out_proj.weight, layer.self_attn.out_proj.bias,
                layer.linear1.weight, layer.linear1.bias, layer.linear2.weight, layer.linear2.bias,
                layer.norm1.weight, layer.norm1.bias, layer.norm2.weight, layer.norm2.bias,
            )
        ])
        groups, stages = triton.cdiv(images, IMAGES), 2 * count
        shape = stages, groups, self.heads, 2 * IMAGES, width
        sums = torch.full(shape, UNSET, dtype=torch.int32, device=x.device)
        kept = x.new_empty(groups * self.heads, 16, width)
        y = x.new_empty(images, classes)
        assert self.heads == 4
        for begin in range(0, stages + 1, STAGES_AT_ONCE):
            transform[(groups * self.heads,)](
                partial, self.linear_proj.bias, self.cls_token, layers, sums, kept,
                self.fc_out.weight, self.fc_out.bias, y, images, classes, count,
                (width // self.heads) ** -0.5, self.transformer_layers[0].norm1.eps,
                begin, min(begin + STAGES_AT_ONCE, stages + 1),
                E=width, HEADS=self.heads, HIDDEN=self.hidden, PARTS=width // 2, IMAGES=IMAGES,
                BN=128, UNSET=UNSET, num_warps=8, num_stages=1,
            )
        return y
