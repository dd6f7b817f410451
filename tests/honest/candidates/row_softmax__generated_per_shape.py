"""Softmax whose source is written at run time: the row length is a constant of the generated text.

Libraries are compiled at the first call with a new shape and kept in a dictionary.
"""

from __future__ import annotations

import torch

from kernel_smith.inline import Library, cpp

ELEMENT = {torch.float32: "float", torch.float16: "half"}

HALF = r"""
#include <algorithm>
#include <cmath>
#include <cstdint>

#if defined(__aarch64__)
typedef __fp16 half;
#elif defined(__FLT16_MAX__)
typedef _Float16 half;
#else
// For compilers without the type. Softmax needs neither NaN nor infinity.
struct half {
    uint16_t bits;
    operator float() const {
        const float magnitude = std::ldexp(
            static_cast<float>(bits & 0x7c00 ? (bits & 0x3ff) | 0x400 : bits & 0x3ff),
            std::max(bits >> 10 & 0x1f, 1) - 25);
        return bits & 0x8000 ? -magnitude : magnitude;
    }
    half() = default;
    explicit half(float value) {  // not negative, at most one
        int exponent;
        std::frexp(value, &exponent);
        const int step = value < 0x1p-14f ? -24 : exponent - 11;
        const int mantissa = static_cast<int>(std::nearbyint(std::ldexp(value, -step)));
        bits = static_cast<uint16_t>(mantissa + (step + 24) * 0x400);
    }
};
#endif
"""

_libraries: dict[tuple[int, torch.dtype], Library] = {}


def write_source(columns: int, element: str) -> str:
    whole, rest = divmod(columns, 8)
    tail = f"for (int c = {whole * 8}; c < {columns}; ++c)"
    return HALF + f"""
extern "C" void softmax_{columns}(const {element}* x, {element}* y, int64_t rows) {{
    #pragma omp parallel for
    for (int64_t r = 0; r < rows; ++r) {{
        const {element}* in = x + r * {columns};
        {element}* out = y + r * {columns};
        alignas(64) float values[{columns}];
        float lanes[8];
        for (int i = 0; i < 8; ++i) lanes[i] = -INFINITY;
        for (int b = 0; b < {whole}; ++b)
            for (int i = 0; i < 8; ++i) {{
                values[b * 8 + i] = in[b * 8 + i];
                lanes[i] = values[b * 8 + i] > lanes[i] ? values[b * 8 + i] : lanes[i];
            }}
        float largest = lanes[0];
        for (int i = 1; i < 8; ++i) largest = lanes[i] > largest ? lanes[i] : largest;
        {tail if rest else "for (int c = 0; c < 0; ++c)"} {{
            values[c] = in[c];
            largest = values[c] > largest ? values[c] : largest;
        }}
        double sum = 0.0;
        for (int c = 0; c < {columns}; ++c) sum += values[c] = std::exp(values[c] - largest);
        const float inverse = static_cast<float>(1.0 / sum);
        for (int c = 0; c < {columns}; ++c) out[c] = static_cast<{element}>(values[c] * inverse);
    }}
}}
"""


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.contiguous()
        rows, columns = x.shape
        key = (columns, x.dtype)
        try:
            library = _libraries[key]
        except KeyError:
            library = _libraries[key] = cpp(write_source(columns, ELEMENT[x.dtype]))
        y = torch.empty_like(x)
        getattr(library, f"softmax_{columns}")(x, y, rows)
        return y
