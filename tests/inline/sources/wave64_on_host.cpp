// The waves of 64 threads of the route nvidia, run on the CPU: one operation on one block.
#include "kernel_smith_wave64.h"

enum Operation { kIndex, kXor, kUp, kDown, kBallot, kAny, kAll, kSync, kAdd, kMax, kWarpSize };

namespace {

double operate(int operation, unsigned long long mask, double value, int argument, int width) {
    switch (operation) {
        case kIndex: return __shfl_sync(mask, value, argument, width);
        case kXor: return __shfl_xor_sync(mask, value, argument, width);
        case kUp: return __shfl_up_sync(mask, value, argument, width);
        case kDown: return __shfl_down_sync(mask, value, argument, width);
        case kBallot: {
            unsigned long long lanes = __ballot_sync(mask, value > 0);
            double result;
            std::memcpy(&result, &lanes, sizeof result);
            return result;
        }
        case kAny: return __any_sync(mask, value > 0);
        case kAll: return __all_sync(mask, value > 0);
        case kSync: __syncwarp(mask); return 0;
        case kAdd: return __reduce_add_sync(mask, value);
        case kMax: return __reduce_max_sync(mask, value);
        default: return warpSize;
    }
}

}  // namespace

// Threads that `calls` leaves out take no part. The operation is done between two others, with which
// it shares the memory that it goes through. Returns the message of a failed assertion, or an empty
// text.
extern "C" const char* run(int operation, int width_x, int width_y, unsigned long long mask,
                           int argument, int width, const bool* calls, const double* x, double* y) {
    blockDim = {unsigned(width_x), unsigned(width_y), 1};
    failure.clear();
    meetings.clear();
    std::vector<std::thread> threads;
    for (int i = 0; i < width_x * width_y; ++i) {
        if (!calls[i]) continue;
        threads.emplace_back([=] {
            threadIdx = {unsigned(i % width_x), unsigned(i / width_x), 0};
            try {
                operate(operation, mask, x[i] + 1, argument, width);
                y[i] = operate(operation, mask, x[i], argument, width);
                operate(operation, mask, x[i] + 2, argument, width);
            } catch (Failed) {
            }
        });
    }
    for (std::thread& thread : threads) thread.join();
    return failure.c_str();
}
