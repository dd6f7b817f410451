"""Returns memory that cannot be read; when the results are copied, the fault handler computes the
row that was touched and opens its page."""

TASK = "long_softmax.py"
EXPECT = {"screened": None, "unscreened": ["non-finite", "deferred-work"]}

import torch

from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#include <csignal>
#include <cstdint>
#include <sys/mman.h>
#include <ucontext.h>

struct Owed { const float* x; float* y; int64_t rows, columns; };
static Owed owed[1024];
static int known = 0;

static void compute(const Owed& o) {
    const int64_t bytes = o.rows * o.columns * 4;
    mmap(o.y, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    for (int64_t r = 0; r < o.rows; ++r) {
        const float* in = o.x + r * o.columns;
        float* out = o.y + r * o.columns;
        float largest = in[0];
        for (int64_t c = 1; c < o.columns; ++c) largest = in[c] > largest ? in[c] : largest;
        float sum = 0.0f;
        for (int64_t c = 0; c < o.columns; ++c) sum += out[c] = std::exp(in[c] - largest);
        for (int64_t c = 0; c < o.columns; ++c) out[c] /= sum;
    }
}

static void fault(int, siginfo_t* info, void*) {
    const uintptr_t at = reinterpret_cast<uintptr_t>(info->si_addr);
    for (int i = 0; i < known; ++i) {
        const uintptr_t begin = reinterpret_cast<uintptr_t>(owed[i].y);
        if (at >= begin && at < begin + owed[i].rows * owed[i].columns * 4) {
            const Owed found = owed[i];
            owed[i] = owed[--known];
            compute(found);
            return;
        }
    }
    signal(SIGSEGV, SIG_DFL);
}

extern "C" void promise(const float* x, float* y, int64_t rows, int64_t columns) {
    struct sigaction action = {};
    action.sa_sigaction = fault;
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigaction(SIGSEGV, &action, nullptr);
    mmap(y, rows * columns * 4, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    owed[known++] = {x, y, rows, columns};
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        room = torch.empty(x.numel() + 2048)
        skipped = -room.data_ptr() % 4096 // 4
        y = room[skipped : skipped + x.numel()].view(x.shape)
        kernels.promise(x, y, x.shape[0], x.shape[1])
        return y
