// A small part of cooperative groups: blocks, tiles of a wave, and reductions over a tile.
#pragma once

#include "../simt.h"

#pragma GCC visibility push(hidden)
namespace cooperative_groups {

inline unsigned rank_in_block() {
  return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
}

struct thread_block {
  void sync(int line = __builtin_LINE()) const {
    ks_simt::barrier("thread_block::sync", line, false);
  }
  unsigned thread_rank() const { return rank_in_block(); }
  unsigned size() const { return blockDim.x * blockDim.y * blockDim.z; }
  unsigned num_threads() const { return size(); }
  dim3 group_index() const { return blockIdx; }
  dim3 thread_index() const { return threadIdx; }
  dim3 group_dim() const { return blockDim; }
  dim3 dim_threads() const { return blockDim; }
};

inline thread_block this_thread_block() { return {}; }

struct grid_group {
  unsigned long long block_rank() const {
    unsigned long long rows = blockIdx.y + uint64_t(gridDim.y) * blockIdx.z;
    return blockIdx.x + gridDim.x * rows;
  }
  unsigned long long num_blocks() const { return uint64_t(gridDim.x) * gridDim.y * gridDim.z; }
  unsigned long long thread_rank() const {
    return block_rank() * this_thread_block().size() + rank_in_block();
  }
  unsigned long long size() const { return num_blocks() * this_thread_block().size(); }
  unsigned long long num_threads() const { return size(); }
  template <class... Nothing>
  void sync(Nothing...) const {
    static_assert(ks_simt::never<Nothing...>,
                  "not emulated on the CPU: grid.sync() (blocks run one after the other)");
  }
};

inline grid_group this_grid() { return {}; }

template <unsigned Size, class Parent = void>
struct thread_block_tile {
  static_assert(Size >= 1 && Size <= KS_WAVE && (Size & (Size - 1)) == 0,
                "a tile has a power of two of threads, at most a wave");

  static ks_simt_mask mask() {
    return (ks_simt::all_lanes >> (KS_WAVE - Size)) << (rank_in_block() % KS_WAVE / Size * Size);
  }
  static constexpr unsigned size() { return Size; }
  static constexpr unsigned num_threads() { return Size; }
  unsigned thread_rank() const { return rank_in_block() % Size; }
  unsigned meta_group_rank() const { return rank_in_block() / Size; }
  unsigned meta_group_size() const { return (this_thread_block().size() + Size - 1) / Size; }

  void sync(int line = __builtin_LINE()) const {
    ks_simt::ballot("tile::sync", line, mask(), true);
  }
  template <class T>
  T shfl(T value, int source, int line = __builtin_LINE()) const {
    return ks_simt::shuffle_index("tile::shfl", line, mask(), value, source, Size);
  }
  template <class T>
  T shfl_up(T value, unsigned delta, int line = __builtin_LINE()) const {
    return ks_simt::shuffle_up("tile::shfl_up", line, mask(), value, delta, Size);
  }
  template <class T>
  T shfl_down(T value, unsigned delta, int line = __builtin_LINE()) const {
    return ks_simt::shuffle_down("tile::shfl_down", line, mask(), value, delta, Size);
  }
  template <class T>
  T shfl_xor(T value, int bits, int line = __builtin_LINE()) const {
    return ks_simt::shuffle_xor("tile::shfl_xor", line, mask(), value, bits, Size);
  }
  ks_simt_mask ballot(int vote, int line = __builtin_LINE()) const {
    uint64_t votes = ks_simt::ballot("tile::ballot", line, mask(), vote != 0).votes;
    return ks_simt_mask(votes >> (rank_in_block() % KS_WAVE / Size * Size));
  }
  int any(int vote, int line = __builtin_LINE()) const {
    return ks_simt::ballot("tile::any", line, mask(), vote != 0).votes != 0;
  }
  int all(int vote, int line = __builtin_LINE()) const {
    ks_simt::Ballot result = ks_simt::ballot("tile::all", line, mask(), vote != 0);
    return result.votes == result.lanes;
  }
};

template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent&) {
  return {};
}

template <class Group>
void sync(const Group& group, int line = __builtin_LINE()) {
  group.sync(line);
}

template <class T> struct plus { T operator()(T a, T b) const { return a + b; } };
template <class T> struct less { T operator()(T a, T b) const { return b < a ? b : a; } };
template <class T> struct greater { T operator()(T a, T b) const { return a < b ? b : a; } };
template <class T> struct bit_and { T operator()(T a, T b) const { return a & b; } };
template <class T> struct bit_or { T operator()(T a, T b) const { return a | b; } };
template <class T> struct bit_xor { T operator()(T a, T b) const { return a ^ b; } };

template <unsigned Size, class Parent, class T, class Operation>
T reduce(const thread_block_tile<Size, Parent>& tile, T value, Operation operation,
         int line = __builtin_LINE()) {
  for (unsigned bits = Size / 2; bits != 0; bits /= 2)
    value = operation(value, tile.shfl_xor(value, int(bits), line));
  return value;
}

}  // namespace cooperative_groups
#pragma GCC visibility pop
