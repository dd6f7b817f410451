"""Separable maximum pooling (columns first, then rows) on a pool of threads that sleeps between
calls and is waited for within each of them."""

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <algorithm>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <limits>
#include <mutex>
#include <thread>
#include <vector>

namespace {

class Pool {
public:
    explicit Pool(int workers) {
        for (int w = 0; w < workers; ++w) threads_.emplace_back([this, w] { serve(w); });
    }

    ~Pool() {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            stopping_ = true;
        }
        wake_.notify_all();
        for (std::thread& thread : threads_) thread.join();
    }

    // Runs `job` on every worker and on the caller; returns when all are done.
    void run(const std::function<void(int, int)>& job) {
        {
            std::lock_guard<std::mutex> lock(mutex_);
            job_ = &job;
            pending_ = static_cast<int>(threads_.size());
            ++round_;
        }
        wake_.notify_all();
        job(static_cast<int>(threads_.size()), static_cast<int>(threads_.size()) + 1);
        std::unique_lock<std::mutex> lock(mutex_);
        done_.wait(lock, [this] { return pending_ == 0; });
    }

private:
    void serve(int worker) {
        int64_t seen = 0;
        while (true) {
            const std::function<void(int, int)>* job;
            {
                std::unique_lock<std::mutex> lock(mutex_);
                wake_.wait(lock, [&] { return stopping_ || round_ != seen; });
                if (stopping_) return;
                seen = round_;
                job = job_;
            }
            (*job)(worker, static_cast<int>(threads_.size()) + 1);
            std::lock_guard<std::mutex> lock(mutex_);
            if (--pending_ == 0) done_.notify_one();
        }
    }

    std::vector<std::thread> threads_;
    std::mutex mutex_;
    std::condition_variable wake_, done_;
    const std::function<void(int, int)>* job_ = nullptr;
    int pending_ = 0;
    int64_t round_ = 0;
    bool stopping_ = false;
};

void one_plane(const float* in, float* out, int64_t height, int64_t width, std::vector<float>& best) {
    const int64_t rows = (height - 1) / 2 + 1, columns = (width - 1) / 2 + 1;
    best.resize(width);
    for (int64_t row = 0; row < rows; ++row) {
        const int64_t first = std::max<int64_t>(row * 2 - 1, 0);
        const int64_t last = std::min(row * 2 + 1, height - 1);
        std::copy(in + first * width, in + (first + 1) * width, best.begin());
        for (int64_t r = first + 1; r <= last; ++r)
            for (int64_t c = 0; c < width; ++c) best[c] = std::max(best[c], in[r * width + c]);
        for (int64_t column = 0; column < columns; ++column) {
            float largest = best[column * 2];
            if (column > 0) largest = std::max(largest, best[column * 2 - 1]);
            if (column * 2 + 1 < width) largest = std::max(largest, best[column * 2 + 1]);
            out[row * columns + column] = largest;
        }
    }
}

}  // namespace

extern "C" void max_pool(const float* x, float* y, int64_t planes, int64_t height, int64_t width,
                         int workers) {
    static Pool pool(workers);
    const int64_t size = ((height - 1) / 2 + 1) * ((width - 1) / 2 + 1);
    pool.run([=](int part, int parts) {
        std::vector<float> best;
        for (int64_t plane = planes * part / parts; plane < planes * (part + 1) / parts; ++plane) {
            one_plane(x + plane * height * width, y + plane * size, height, width, best);
        }
    });
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, channels, height, width = x.shape
        y = torch.empty(batch, channels, (height + 1) // 2, (width + 1) // 2)
        workers = max(1, torch.get_num_threads() - 1)
        kernels.max_pool(x.contiguous(), y, batch * channels, height, width, workers)
        return y
