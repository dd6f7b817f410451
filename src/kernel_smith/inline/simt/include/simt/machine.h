// The machine: one block's threads, who of them waits for what, and who runs next.
//
// A fiber runs thread after thread until one has to wait; then it keeps that thread, and another
// fiber goes on with the rest. A kernel without barriers is a loop on one fiber.
#pragma once

inline uint3 threadIdx, blockIdx;
inline dim3 blockDim, gridDim;
constexpr int warpSize = KS_WAVE;

namespace ks_simt {

constexpr unsigned most_threads = 1024;
constexpr unsigned most_waves = most_threads / KS_WAVE;
constexpr size_t most_shared = KS_WAVE == 32 ? 227 << 10 : 64 << 10;

alignas(1024) inline unsigned char shared_memory[most_shared];

struct Group;

// What a lane says when it arrives at a wave operation. Values stay on the stacks of their threads.
struct Request {
  const char* name;
  void (*combine)(const Group&);
  uint64_t mask;  // the lanes that must take part; 0: whoever is active
  int line;
  const void* value;
  void* result;
  unsigned source;  // the lane that a shuffle reads
  bool done;
};

struct Wave;

struct Thread {
  uint3 index;
  unsigned lane;
  Wave* wave;
  Fiber* fiber;
  Request* request;      // set while the thread waits at a wave operation
  const char* barrier;   // set while it waits at a barrier
  int line;
  bool exited;
};

struct Wave {
  Thread* lanes;  // lane i is lanes[i]
  uint64_t alive;
  uint64_t waiting;
};

// The lanes that complete a wave operation together.
struct Group {
  const Wave& wave;
  uint64_t lanes;

  template <class Visit>
  void each(Visit visit) const {
    for (uint64_t left = lanes; left != 0; left &= left - 1) {
      unsigned lane = static_cast<unsigned>(__builtin_ctzll(left));
      visit(lane, *wave.lanes[lane].request);
    }
  }
};

struct Machine {
  Thread threads[most_threads];
  Wave waves[most_waves];
  Fiber fibers[most_threads];
  Fiber* idle[most_threads];
  Thread* ready[most_threads];
  Context scheduler;
  Thread* current;
  Fiber* running;
  void (*body)(void*);
  void* body_data;
  unsigned total, started, alive, at_barrier, idle_count, fiber_count, ready_first, ready_count;
  unsigned barrier_true, barrier_true_result, barrier_count_result;
  unsigned spins;
  cudaError failure;
  pthread_mutex_t turn = PTHREAD_MUTEX_INITIALIZER;
};

inline Machine machine;
inline thread_local bool inside_launch = false;

// A std::lock_guard: <mutex> would take the compiler as long as everything that is here.
struct Turn {
  Turn() { pthread_mutex_lock(&machine.turn); }
  ~Turn() { pthread_mutex_unlock(&machine.turn); }
  Turn(const Turn&) = delete;
};

inline void make_ready(Thread& thread) {
  machine.ready[(machine.ready_first + machine.ready_count++) % most_threads] = &thread;
}

inline void enter(Thread& thread) {
  machine.current = &thread;
  threadIdx = thread.index;
}

inline void suspend() { machine.running->context.switch_to(machine.scheduler); }

// End the launch: nothing that still waits is ever resumed.
[[noreturn]] inline void fail() {
  machine.failure = cudaErrorLaunchFailure;
  suspend();
  abort();
}

inline void print_where() {
  fprintf(stderr, "kernel-smith: launch aborted in block (%u, %u, %u): ", blockIdx.x, blockIdx.y,
          blockIdx.z);
}

// Let the others run now and then, in case this thread spins until one of them writes.
inline void spin() {
  if (!inside_launch || ++machine.spins % 256 != 0) return;
  Thread& thread = *machine.current;
  thread.fiber = machine.running;
  make_ready(thread);
  suspend();
}

// Who waits at the barrier may go on if everybody who has not exited is there.
inline void settle_barrier() {
  if (machine.at_barrier == 0 || machine.at_barrier != machine.alive) return;
  const Thread* first = nullptr;
  for (unsigned i = 0; i < machine.total; ++i) {
    Thread& thread = machine.threads[i];
    if (thread.barrier == nullptr) continue;
    if (first == nullptr) first = &thread;
    if (thread.line != first->line) {
      print_where();
      fprintf(stderr, "some threads wait at the %s of line %d, others at the %s of line %d\n",
              first->barrier, first->line, thread.barrier, thread.line);
      machine.failure = cudaErrorLaunchFailure;
      return;
    }
  }
  machine.barrier_true_result = machine.barrier_true;
  machine.barrier_count_result = machine.at_barrier;
  machine.barrier_true = machine.at_barrier = 0;
  for (unsigned i = 0; i < machine.total; ++i) {
    Thread& thread = machine.threads[i];
    if (thread.barrier == nullptr) continue;
    thread.barrier = nullptr;
    if (&thread != machine.current) make_ready(thread);
  }
}

inline bool same_operation(const Request& one, const Request& other) {
  return one.name == other.name && one.combine == other.combine && one.mask == other.mask &&
         (one.mask != 0 || one.line == other.line);
}

inline void finish(Wave& wave, uint64_t lanes) {
  Group group{wave, lanes};
  wave.lanes[__builtin_ctzll(lanes)].request->combine(group);
  group.each([&](unsigned lane, Request& request) {
    Thread& thread = wave.lanes[lane];
    request.done = true;
    thread.request = nullptr;
    if (&thread != machine.current) make_ready(thread);
  });
  wave.waiting &= ~lanes;
}

// The lanes that wait at the same operation as this request.
inline uint64_t companions(const Wave& wave, const Request& request) {
  uint64_t lanes = 0;
  Group{wave, wave.waiting}.each([&](unsigned lane, const Request& other) {
    if (same_operation(request, other)) lanes |= uint64_t(1) << lane;
  });
  return lanes;
}

inline void settle_wave(Wave& wave, const Request& request) {
  uint64_t needed = request.mask == 0 ? wave.alive : request.mask & wave.alive;
  if ((needed & ~wave.waiting) == 0 && companions(wave, request) == needed) finish(wave, needed);
}

// An operation without a mask takes the lanes that are active. Who that is shows when nobody can go
// on without it. Of several, the one that stands first in the text: others wait behind a branch.
inline bool settle_active(Wave& wave) {
  const Request* first = nullptr;
  Group{wave, wave.waiting}.each([&](unsigned, const Request& request) {
    if (request.mask == 0 && (first == nullptr || request.line < first->line)) first = &request;
  });
  if (first != nullptr) finish(wave, companions(wave, *first));
  return first != nullptr;
}

inline void leave_thread() {
  Thread& thread = *machine.current;
  Wave& wave = *thread.wave;
  thread.exited = true;
  --machine.alive;
  wave.alive &= ~(uint64_t(1) << thread.lane);
  machine.current = nullptr;
  settle_barrier();
  for (uint64_t left = wave.waiting; left != 0; left &= wave.waiting & (left - 1))
    settle_wave(wave, *wave.lanes[__builtin_ctzll(left)].request);
}

inline void fiber_main() {
  for (;;) {
    while (machine.started < machine.total && machine.failure == cudaSuccess) {
      enter(machine.threads[machine.started++]);
      machine.body(machine.body_data);
      leave_thread();
    }
    machine.idle[machine.idle_count++] = machine.running;
    suspend();
  }
}

inline void report_deadlock() {
  print_where();
  fprintf(stderr, "threads wait for others that never arrive:");
  const char* last_name = nullptr;
  int last_line = 0;
  for (unsigned i = 0; i < machine.total; ++i) {
    const Thread& thread = machine.threads[i];
    if (thread.exited) continue;
    const char* name = thread.request != nullptr ? thread.request->name : thread.barrier;
    int line = thread.request != nullptr ? thread.request->line : thread.line;
    if (name == last_name && line == last_line) continue;
    fprintf(stderr, "%s thread (%u, %u, %u) at %s of line %d", last_name != nullptr ? "," : "",
            thread.index.x, thread.index.y, thread.index.z, name, line);
    if (thread.request != nullptr && thread.request->mask != 0)
      fprintf(stderr, " with mask 0x%llx", static_cast<unsigned long long>(thread.request->mask));
    last_name = name;
    last_line = line;
  }
  fprintf(stderr, "\n");
}

inline bool take_fiber() {
  if (machine.idle_count != 0) {
    machine.running = machine.idle[--machine.idle_count];
    return true;
  }
  Fiber& fiber = machine.fibers[machine.fiber_count];
  if (!fiber.allocate()) {
    fprintf(stderr, "kernel-smith: launch aborted: no memory for the stacks of a block\n");
    machine.failure = cudaErrorMemoryAllocation;
    return false;
  }
  // Stacks that all began at the same place of a page would compete for lines of the cache.
  size_t shift = machine.fiber_count++ % 32 * 384;
  fiber.context.prepare(fiber.stack, stack_bytes - shift, fiber_main);
  machine.running = &fiber;
  return true;
}

// Choose who runs next; false if nobody can, or if the launch has failed.
inline bool choose() {
  if (machine.started < machine.total) return take_fiber();
  if (machine.ready_count == 0 && machine.alive != 0) {
    bool found = false;
    machine.current = nullptr;
    for (unsigned i = 0; i * KS_WAVE < machine.total; ++i) found |= settle_active(machine.waves[i]);
    if (!found) {
      report_deadlock();
      machine.failure = cudaErrorLaunchFailure;
    }
  }
  if (machine.ready_count == 0) return false;
  Thread& next = *machine.ready[machine.ready_first];
  machine.ready_first = (machine.ready_first + 1) % most_threads;
  --machine.ready_count;
  machine.running = next.fiber;
  enter(next);
  return true;
}

inline void start_block() {
  machine.started = machine.at_barrier = machine.ready_count = machine.barrier_true = 0;
  machine.alive = machine.total;
  for (unsigned i = 0; i < machine.total; ++i) {
    Thread& thread = machine.threads[i];
    thread.request = nullptr;
    thread.barrier = nullptr;
    thread.exited = false;
  }
  for (unsigned i = 0; i * KS_WAVE < machine.total; ++i) {
    unsigned lanes = std::min<unsigned>(KS_WAVE, machine.total - i * KS_WAVE);
    machine.waves[i] = {machine.threads + i * KS_WAVE, ~uint64_t(0) >> (64 - lanes), 0};
  }
}

inline bool run_block() {
  start_block();
  while (machine.failure == cudaSuccess && choose())
    machine.scheduler.switch_to(machine.running->context);
  return machine.failure == cudaSuccess;
}

}  // namespace ks_simt
