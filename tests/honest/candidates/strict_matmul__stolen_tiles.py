"""Threads own ranges of tiles and steal half of another's when theirs is empty; all are joined."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(r"""
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>
#include <vector>

constexpr int64_t kRows = 4, kColumns = 32;

// Begin and end of a range in one word, so that owner and thieves agree by compare-and-swap.
static uint64_t range(uint32_t begin, uint32_t end) { return uint64_t(begin) << 32 | end; }

static bool take(std::atomic<uint64_t>& own, uint32_t& tile) {
    uint64_t seen = own.load();
    while (uint32_t(seen >> 32) < uint32_t(seen)) {
        tile = seen >> 32;
        if (own.compare_exchange_weak(seen, range(tile + 1, uint32_t(seen)))) return true;
    }
    return false;
}

static bool steal(std::atomic<uint64_t>& other, std::atomic<uint64_t>& own) {
    uint64_t seen = other.load();
    while (uint32_t(seen >> 32) < uint32_t(seen)) {
        const uint32_t begin = seen >> 32, end = seen, half = begin + (end - begin) / 2;
        if (other.compare_exchange_weak(seen, range(begin, half))) {
            own.store(range(half, end));
            return true;
        }
    }
    return false;
}

static void multiply(const float* a, const float* b, float* c, int64_t n, int64_t row,
                     int64_t column) {
    const int64_t rows = std::min(kRows, n - row), columns = std::min(kColumns, n - column);
    float sums[kRows][kColumns] = {};
    for (int64_t k = 0; k < n; ++k)
        for (int64_t i = 0; i < rows; ++i)
            for (int64_t j = 0; j < columns; ++j)
                sums[i][j] += a[(row + i) * n + k] * b[k * n + column + j];
    for (int64_t i = 0; i < rows; ++i)
        std::copy(sums[i], sums[i] + columns, c + (row + i) * n + column);
}

extern "C" void matmul(const float* a, const float* b, float* c, int64_t n, int64_t workers) {
    const int64_t across = (n + kColumns - 1) / kColumns;
    const int64_t tiles = across * ((n + kRows - 1) / kRows);
    std::unique_ptr<std::atomic<uint64_t>[]> ranges(new std::atomic<uint64_t>[workers]);
    for (int64_t w = 0; w < workers; ++w)
        ranges[w] = range(tiles * w / workers, tiles * (w + 1) / workers);
    const auto work = [&](int64_t me) {
        uint32_t tile;
        for (bool found = true; found;) {
            while (take(ranges[me], tile))
                multiply(a, b, c, n, tile / across * kRows, tile % across * kColumns);
            found = false;
            for (int64_t w = 1; w < workers && !found; ++w)
                found = steal(ranges[(me + w) % workers], ranges[me]);
        }
    };
    std::vector<std::thread> team;
    for (int64_t w = 1; w < workers; ++w) team.emplace_back(work, w);
    work(0);
    for (std::thread& member : team) member.join();
}
""")


class ModelNew(torch.nn.Module):
    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        c = torch.empty_like(a)
        kernels.matmul(a.contiguous(), b.contiguous(), c, a.shape[0], torch.get_num_threads())
        return c
