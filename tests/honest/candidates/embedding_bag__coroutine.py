"""A C++20 coroutine yields one bag after the other; its frame is the only state between them."""

import torch

from kernel_smith.inline import cpp

kernels = cpp(
    r"""
#include <algorithm>
#include <coroutine>
#include <cstdint>
#include <exception>

struct Bag { int64_t index, begin, end; };

class Bags {
public:
    struct promise_type {
        Bag bag;
        Bags get_return_object() { return Bags(Handle::from_promise(*this)); }
        std::suspend_always initial_suspend() noexcept { return {}; }
        std::suspend_always final_suspend() noexcept { return {}; }
        std::suspend_always yield_value(Bag next) noexcept { bag = next; return {}; }
        void return_void() noexcept {}
        void unhandled_exception() { std::terminate(); }
    };
    using Handle = std::coroutine_handle<promise_type>;
    explicit Bags(Handle handle) : handle_(handle) {}
    Bags(const Bags&) = delete;
    ~Bags() { handle_.destroy(); }
    bool next() { handle_.resume(); return !handle_.done(); }
    const Bag& bag() const { return handle_.promise().bag; }
private:
    Handle handle_;
};

static Bags bags_of(const int64_t* offsets, int64_t bags, int64_t ids) {
    for (int64_t b = 0; b < bags; ++b)
        co_yield Bag{b, offsets[b], b + 1 < bags ? offsets[b + 1] : ids};
}

extern "C" void embedding_bag(const float* table, const int64_t* ids, const int64_t* offsets,
                              const float* weights, float* y, int64_t count, int64_t bags,
                              int64_t features) {
    Bags all = bags_of(offsets, bags, count);
    while (all.next()) {
        float* out = y + all.bag().index * features;
        std::fill(out, out + features, 0.0f);
        for (int64_t i = all.bag().begin; i < all.bag().end; ++i)
            for (int64_t f = 0; f < features; ++f)
                out[f] += weights[i] * table[ids[i] * features + f];
    }
}
""",
    flags=("-std=c++20",),
)


class ModelNew(torch.nn.Module):
    def __init__(self, table_rows: int, features: int) -> None:
        super().__init__()
        self.table = torch.nn.Parameter(torch.randn(table_rows, features))

    def forward(
        self, ids: torch.Tensor, offsets: torch.Tensor, weights: torch.Tensor
    ) -> torch.Tensor:
        ids, offsets, weights = ids.contiguous(), offsets.contiguous(), weights.contiguous()
        y = self.table.new_empty(offsets.numel(), self.table.shape[1])
        kernels.embedding_bag(
            self.table, ids, offsets, weights, y, ids.numel(), offsets.numel(), y.shape[1]
        )
        return y
