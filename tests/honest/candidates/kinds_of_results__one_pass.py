"""Numbers that kernels return, a complex result through float pointers, and a transposed result that
is returned contiguous."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <cmath>
#include <cstdint>

extern "C" double norm(const float* x, int64_t n) {
    double sum = 0.0;
    for (int64_t i = 0; i < n; ++i) sum += double(x[i]) * x[i];
    return std::sqrt(sum);
}

extern "C" void turned(const float* z, float* y, int64_t n, float s) {
    for (int64_t i = 0; i < n; ++i) {
        const float a = z[2 * i], b = z[2 * i + 1];
        const float c = z[2 * (n - 1 - i)], d = -z[2 * (n - 1 - i) + 1];
        y[2 * i] = (a * c - b * d) * s;
        y[2 * i + 1] = (a * d + b * c) * s;
    }
}

extern "C" double rest(const float* x, float* t, int64_t* count, int64_t rows, int64_t n, float s) {
    double sum = 0.0;
    for (int64_t r = 0; r < rows; ++r) {
        count[r] = 0;
        for (int64_t c = 0; c < n; ++c) {
            sum += x[r * n + c];
            count[r] += x[r * n + c] > 0;
            t[c * rows + r] = x[r * n + c] * s;
        }
    }
    return sum / (rows * n);
}

extern "C" int64_t most(const int64_t* count, int64_t rows) {
    int64_t largest = count[0];
    for (int64_t r = 1; r < rows; ++r) largest = count[r] > largest ? count[r] : largest;
    return largest;
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, batch, scale):
        x, z = batch["x"].contiguous(), batch["z"].contiguous()
        turned = torch.empty_like(z)
        kernels.turned(z, turned, z.numel(), scale)
        t = x.new_empty(x.shape[1], x.shape[0])
        count = torch.empty(x.shape[0], dtype=torch.int64)
        mean = kernels.rest(x, t, count, x.shape[0], x.shape[1], scale)
        return {
            "norm": kernels.norm(x, x.numel()),
            "turned": turned,
            "mirrored": (z * scale).conj(),
            "rounded": (x.abs() * 100).to(torch.uint16),
            "parts": [torch.tensor(mean, dtype=x.dtype), t],
            "count": count,
            "most": kernels.most(count, count.numel()),
        }
