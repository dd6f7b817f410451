"""As 1.py, but batch norm and softmax of the assignments, which are few, are a kernel of their own, so that the loop
that aggregates does nothing but move features and multiply; it forms the aggregate with the clusters as rows, for
which no features need to be transposed."""

import math

import torch
import triton
import triton.language as tl


@triton.jit
def assign(
    x, w, logits, means, squares, rows,
    D: tl.constexpr, K: tl.constexpr, BM: tl.constexpr, BK: tl.constexpr,
):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, K)
    inside = (r < rows)[:, None]
    total = tl.zeros((BM, K), tl.float32)
    for start in range(0, D, BK):
        d = start + tl.arange(0, BK)
        left = tl.load(x + r[:, None] * D + d[None, :], mask=inside, other=0.0)
        right = tl.load(w + d[:, None] * K + c[None, :])
        total = tl.dot(left, right, total, input_precision="tf32")
    tl.store(logits + r[:, None] * K + c[None, :], total, mask=inside)
    # Deviations from the block's own mean, since a shifted input would drown them in squares.
    count = tl.minimum(rows - tl.program_id(0) * BM, BM)
    mean = tl.sum(total, 0) / count
    away = tl.where(inside, total - mean[None, :], 0.0)
    tl.store(means + tl.program_id(0) * K + c, mean)
    tl.store(squares + tl.program_id(0) * K + c, tl.sum(away * away, 0))


@triton.jit
def join_statistics(
    means, squares, weight, scale, middle, rows, blocks, eps,
    K: tl.constexpr, BM: tl.constexpr, BLOCK: tl.constexpr,
):
    k = tl.program_id(0)
    b = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, blocks, BLOCK):
        at = start + b
        count = tl.where(at < blocks, tl.minimum(rows - at * BM, BM), 0).to(tl.float32)
        total += count * tl.load(means + at * K + k, mask=at < blocks, other=0.0)
    mean = tl.sum(total, 0) / rows
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, blocks, BLOCK):
        at = start + b
        count = tl.where(at < blocks, tl.minimum(rows - at * BM, BM), 0).to(tl.float32)
        away = tl.load(means + at * K + k, mask=at < blocks, other=0.0) - mean
        total += count * away * away + tl.load(squares + at * K + k, mask=at < blocks, other=0.0)
    factor = tl.load(weight + k) / tl.sqrt(tl.sum(total, 0) / rows + eps)
    tl.store(scale + k, factor)
    tl.store(middle + k, mean)


@triton.jit
def soften(logits, scale, mean, bias, rows, K: tl.constexpr, BM: tl.constexpr):
    r = tl.program_id(0) * BM + tl.arange(0, BM)
    c = tl.arange(0, K)
    inside = (r < rows)[:, None]
    at = logits + r[:, None] * K + c[None, :]
    a = (tl.load(at, mask=inside, other=0.0) - tl.load(mean + c)[None, :]) * tl.load(scale + c)[None, :]
    a += tl.load(bias + c)[None, :]
    a = tl.exp(a - tl.max(a, 1)[:, None])
    tl.store(at, a / tl.sum(a, 1)[:, None], mask=inside)


@triton.jit
def aggregate(
    x, assignments, centres, y, features,
    D: tl.constexpr, K: tl.constexpr, BF: tl.constexpr,
):
    b = tl.program_id(0).to(tl.int64)
    c = tl.arange(0, K)
    d = tl.arange(0, D)
    total = tl.zeros((K, D), tl.float32)
    weights = tl.zeros((K, BF), tl.float32)
    for start in range(0, features, BF):
        f = start + tl.arange(0, BF)
        row = b * features + f
        a = tl.load(assignments + row[None, :] * K + c[:, None], mask=(f < features)[None, :], other=0.0)
        v = tl.load(x + row[:, None] * D + d[None, :], mask=(f < features)[:, None], other=0.0)
        weights += a
        total = tl.dot(a, v, total, input_precision="tf32")
    at = d[None, :] * K + c[:, None]
    total -= tl.sum(weights, 1)[:, None] * tl.load(centres + at)
    squares = tl.sum(total * total, 1)
    length = tl.maximum(tl.sqrt(squares), 1e-12)
    # The length of the whole follows from those of the columns.
    whole = tl.maximum(tl.sqrt(tl.sum(squares / (length * length), 0)), 1e-12)
    tl.store(y + b * D * K + at, total / (length * whole)[:, None])


class ModelNew(torch.nn.Module):
    def __init__(self, cluster_size, feature_size, ghost_clusters):
        super().__init__()
        self.feature_size = feature_size
        self.cluster_size = cluster_size
        clusters = cluster_size + ghost_clusters
        deviation = 1 / math.sqrt(feature_size)
        self.clusters = torch.nn.Parameter(deviation * torch.randn(feature_size, clusters))
        self.batch_norm = torch.nn.BatchNorm1d(clusters)
        self.clusters2 = torch.nn.Parameter(deviation * torch.randn(1, feature_size, cluster_size))

    def forward(self, x, mask=None):
        x = x.contiguous()
        batch, features, size = x.shape
        rows, clusters, norm = batch * features, self.cluster_size, self.batch_norm
        bm = 128
        blocks = triton.cdiv(rows, bm)
        logits = torch.empty(rows, clusters, dtype=torch.float32, device=x.device)
        means = torch.empty(2, blocks, clusters, dtype=torch.float32, device=x.device)
        scale = torch.empty(2, clusters, dtype=torch.float32, device=x.device)
        assign[(blocks,)](
            x, self.clusters, logits, means[0], means[1], rows,
            D=size, K=clusters, BM=bm, BK=32, num_warps=4, num_stages=3,
        )
        join_statistics[(clusters,)](
            means[0], means[1], norm.weight, scale[0], scale[1], rows, blocks, norm.eps,
            K=clusters, BM=bm, BLOCK=2048, num_warps=8,
        )
        y = torch.empty(batch, size * clusters, dtype=torch.float32, device=x.device)
        soften[(triton.cdiv(rows, 128),)](
            logits, scale[0], scale[1], norm.bias, rows, K=clusters, BM=128, num_warps=4
        )
        aggregate[(batch,)](
            x, logits, self.clusters2, y, features,
            D=size, K=clusters, BF=16, num_warps=8, num_stages=4, maxnreg=128,
        )
        return y
