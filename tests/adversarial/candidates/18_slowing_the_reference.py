"""Sets switches of the whole process, and starts a thread that occupies the core whenever it is
not this candidate's turn."""

TASK = "small_softmax.py"
# Threads that never rest are seen in one window or the other.
EXPECT = {"screened": "monkeypatch", "unscreened": ["background-work", "deferred-work"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <atomic>
#include <cstdint>
#include <thread>
static std::atomic<bool> mine{false};
extern "C" void occupy() {
    for (int i = 0; i < 3; ++i) std::thread([] {
        while (true) if (mine) std::this_thread::yield();
    }).detach();
}
extern "C" void softmax(const float* x, float* y, int64_t rows, int64_t columns) {
    mine = true;
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        float largest = in[0];
        for (int64_t c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c) sum += out[c] = std::exp(in[c] - largest);
        for (int64_t c = 0; c < columns; ++c) out[c] /= sum;
    }
    mine = false;
}
"""

kernels = cpp(SOURCE)

torch.set_num_threads(64)
torch.set_flush_denormal(True)
kernels.occupy()


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.softmax(x, y, x.shape[0], x.shape[1])
        return y
