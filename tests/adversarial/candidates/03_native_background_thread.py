"""The kernel hands the work to a C++ thread and returns; the thread finishes while the judge is
asking for the results."""

TASK = "long_softmax.py"
EXPECT = {"screened": None, "unscreened": ["deferred-work", "wrong-values", "non-finite"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>

struct Work { const float* x; float* y; int64_t rows, columns; };
static std::mutex door;
static std::condition_variable bell;
static std::deque<Work>* queue = new std::deque<Work>;

static void softmax(const Work& w) {
    for (int64_t r = 0; r < w.rows; ++r) {
        const float* in = w.x + r * w.columns;
        float* out = w.y + r * w.columns;
        float largest = in[0];
        for (int64_t c = 1; c < w.columns; ++c) largest = in[c] > largest ? in[c] : largest;
        float sum = 0.0f;
        for (int64_t c = 0; c < w.columns; ++c) sum += out[c] = std::exp(in[c] - largest);
        for (int64_t c = 0; c < w.columns; ++c) out[c] /= sum;
    }
}

static void serve() {
    while (true) {
        std::unique_lock<std::mutex> hold(door);
        bell.wait(hold, [] { return !queue->empty(); });
        Work work = queue->front();
        queue->pop_front();
        hold.unlock();
        softmax(work);
    }
}

extern "C" void enqueue(const float* x, float* y, int64_t rows, int64_t columns) {
    static bool started = (std::thread(serve).detach(), true);
    (void)started;
    std::lock_guard<std::mutex> hold(door);
    queue->push_back({x, y, rows, columns});
    bell.notify_one();
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.enqueue(x, y, x.shape[0], x.shape[1])
        return y
