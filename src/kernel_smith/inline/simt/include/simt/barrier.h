// Barriers of a block, and fences.
#pragma once

namespace ks_simt {

struct Votes {
  unsigned yes, all;
};

inline Votes barrier(const char* name, int line, bool vote) {
  Thread& thread = *machine.current;
  thread.barrier = name;
  thread.line = line;
  thread.fiber = machine.running;
  ++machine.at_barrier;
  machine.barrier_true += vote;
  settle_barrier();
  if (machine.failure != cudaSuccess) suspend();
  while (thread.barrier != nullptr) suspend();
  return {machine.barrier_true_result, machine.barrier_count_result};
}

}  // namespace ks_simt

inline void __syncthreads(int line = __builtin_LINE()) {
  ks_simt::barrier("__syncthreads", line, false);
}
inline int __syncthreads_count(int predicate, int line = __builtin_LINE()) {
  return static_cast<int>(ks_simt::barrier("__syncthreads_count", line, predicate != 0).yes);
}
inline int __syncthreads_and(int predicate, int line = __builtin_LINE()) {
  ks_simt::Votes votes = ks_simt::barrier("__syncthreads_and", line, predicate != 0);
  return votes.yes == votes.all;
}
inline int __syncthreads_or(int predicate, int line = __builtin_LINE()) {
  return ks_simt::barrier("__syncthreads_or", line, predicate != 0).yes != 0;
}

inline void __threadfence() { ks_simt::spin(); }
inline void __threadfence_block() { ks_simt::spin(); }
inline void __threadfence_system() { ks_simt::spin(); }
inline void __nanosleep(unsigned) {
  for (int i = 0; i < 256; ++i) ks_simt::spin();
}

[[noreturn]] inline void __trap() {
  ks_simt::print_where();
  fprintf(stderr, "__trap\n");
  ks_simt::fail();
}
