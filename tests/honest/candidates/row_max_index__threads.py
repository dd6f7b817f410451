"""Row maxima by threads that are started and joined within the call. Each row is read twice: for
the largest value with independent lanes, then for its first position."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

// bfloat16 as an integer of the same order.
static inline int32_t ordered(uint16_t bits) {
    const int32_t value = static_cast<int16_t>(bits);
    return value < 0 ? -(value & 0x7fff) : value;
}

static int64_t best_of(const float* row, int64_t columns) {
    constexpr int kLanes = 16;
    float lanes[kLanes];
    std::fill(lanes, lanes + kLanes, -std::numeric_limits<float>::infinity());
    int64_t c = 0;
    for (; c + kLanes <= columns; c += kLanes)
        for (int i = 0; i < kLanes; ++i) lanes[i] = row[c + i] > lanes[i] ? row[c + i] : lanes[i];
    float largest = *std::max_element(lanes, lanes + kLanes);
    for (; c < columns; ++c) largest = std::max(largest, row[c]);
    return std::find(row, row + columns, largest) - row;
}

static int64_t best_of(const uint16_t* row, int64_t columns) {
    int32_t largest = std::numeric_limits<int32_t>::min();
    for (int64_t c = 0; c < columns; ++c) largest = std::max(largest, ordered(row[c]));
    int64_t at = 0;
    while (ordered(row[at]) != largest) ++at;
    return at;
}

template <typename Element>
static void all_rows(const Element* x, Element* values, int64_t* indices, int64_t rows,
                     int64_t columns, int64_t threads) {
    const auto work = [=](int64_t first, int64_t last) {
        for (int64_t r = first; r < last; ++r) {
            indices[r] = best_of(x + r * columns, columns);
            values[r] = x[r * columns + indices[r]];
        }
    };
    std::vector<std::thread> others;
    for (int64_t t = 1; t < threads; ++t) {
        others.emplace_back(work, rows * t / threads, rows * (t + 1) / threads);
    }
    work(0, rows / threads);
    for (std::thread& other : others) other.join();
}

extern "C" {
void row_max_float32(const float* x, float* values, int64_t* indices, int64_t rows,
                     int64_t columns, int64_t threads) {
    all_rows(x, values, indices, rows, columns, threads);
}
void row_max_bfloat16(const uint16_t* x, uint16_t* values, int64_t* indices, int64_t rows,
                      int64_t columns, int64_t threads) {
    all_rows(x, values, indices, rows, columns, threads);
}
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    # More than the cores here may be: correctness must not depend on it.
    THREADS = max(2, torch.get_num_threads())

    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = logits.contiguous()
        rows, columns = x.shape
        values, indices = x.new_empty(rows), torch.empty(rows, dtype=torch.int64)
        suffix = str(x.dtype).removeprefix("torch.")
        kernel = getattr(kernels, f"row_max_{suffix}")
        kernel(x, values, indices, rows, columns, self.THREADS)
        return values, indices
