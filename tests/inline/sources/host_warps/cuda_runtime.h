// Enough of CUDA for kernel_smith_wave64.h to run on the CPU: one OS thread per GPU thread, warps of
// 32. A failed assertion ends all threads of the block; its message is kept.
#pragma once

#include <condition_variable>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#define __device__
#define __forceinline__ inline
#define __shared__ static

struct dim3 {
    unsigned x = 1, y = 1, z = 1;
};
inline thread_local dim3 threadIdx;
inline dim3 blockDim;

enum cudaError_t { cudaSuccess };
enum cudaDeviceAttr { cudaDevAttrWarpSize };
struct cudaDeviceProp {};
inline cudaError_t cudaDeviceGetAttribute(int*, cudaDeviceAttr, int) { return cudaSuccess; }

struct Failed {};
inline std::mutex mutex;
inline std::condition_variable changed;
inline std::string failure;

inline void fail(const char* message) {
    std::lock_guard<std::mutex> lock(mutex);
    if (failure.empty()) failure = message;
    changed.notify_all();
    throw Failed();
}
// Named like the C library's, which aborts.
#define __assert_fail(message, file, line, function) fail(message)

inline unsigned linear_index() {
    return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}
inline unsigned block_size() { return blockDim.x * blockDim.y * blockDim.z; }

struct Meeting {
    unsigned arrived = 0;
    unsigned generation = 0;
};
inline std::map<std::pair<unsigned, unsigned>, Meeting> meetings;

// Waits until so many threads have come to the meeting of that name.
inline void wait_for(unsigned count, std::pair<unsigned, unsigned> name) {
    std::unique_lock<std::mutex> lock(mutex);
    Meeting& meeting = meetings[name];
    unsigned generation = meeting.generation;
    if (++meeting.arrived == count) {
        meeting.arrived = 0;
        ++meeting.generation;
        changed.notify_all();
    }
    changed.wait(lock, [&] { return meeting.generation != generation || !failure.empty(); });
    if (!failure.empty()) throw Failed();
}

inline unsigned warp() { return linear_index() / 32; }
inline unsigned warp_threads() {
    unsigned left = block_size() - 32 * warp();
    return left >= 32 ? ~0u : (1u << left) - 1;
}
// Meetings of a warp are named by the warp and the mask, those of a barrier by its number.
inline void __syncwarp(unsigned mask) {
    wait_for(__builtin_popcount(mask & warp_threads()), {1000 + warp(), mask});
}
inline unsigned __activemask() { return warp_threads(); }
inline unsigned values[32][32];
inline unsigned __shfl_sync(unsigned mask, unsigned value, int source) {
    values[warp()][linear_index() % 32] = value;
    __syncwarp(mask);
    unsigned result = values[warp()][source];
    __syncwarp(mask);
    return result;
}
inline unsigned __ballot_sync(unsigned mask, int predicate) {
    values[warp()][linear_index() % 32] = predicate != 0;
    __syncwarp(mask);
    unsigned result = 0;
    for (int lane = 0; lane < 32; ++lane) {
        if ((mask & warp_threads()) >> lane & 1) result |= values[warp()][lane] << lane;
    }
    __syncwarp(mask);
    return result;
}
// The hardware waits for two whole warps; one alone would wait forever.
inline void barrier(unsigned id) {
    unsigned first = 64 * (id - 1);
    if (block_size() < first + 33) fail("a barrier of two warps where there is one");
    wait_for(block_size() - first < 64 ? block_size() - first : 64, {id, 0});
}
#define KERNEL_SMITH_BARRIER(id) barrier(id)
