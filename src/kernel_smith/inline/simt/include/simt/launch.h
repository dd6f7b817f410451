// Launches: `kernel<<<grid, block, shared, stream>>>(arguments)` ends here.
#pragma once

struct KS_PUBLIC CUstream_st;
typedef CUstream_st* cudaStream_t;

namespace ks_simt {

// How much dynamic shared memory a launch may ask for; cudaFuncSetAttribute raises it.
inline size_t dynamic_limit = std::min<size_t>(most_shared, KS_WAVE == 32 ? 48 << 10 : 64 << 10);

// Converts to a pointer of any type, as `extern __shared__ T name[]` needs.
struct DynamicShared {
  template <class T>
  operator T*() const {
    return reinterpret_cast<T*>(shared_memory);
  }
};
constexpr DynamicShared dynamic_shared;

inline cudaError check_shape(const dim3& grid, const dim3& block, size_t shared) {
  uint64_t threads = uint64_t(block.x) * block.y * block.z;
  bool possible = threads >= 1 && threads <= most_threads && grid.x <= 0x7fffffff;
  possible = possible && grid.x >= 1 && grid.y >= 1 && grid.z >= 1;
  if (KS_WAVE == 32) possible = possible && block.z <= 64 && grid.y <= 65535 && grid.z <= 65535;
  if (!possible) return cudaErrorInvalidConfiguration;
  return shared <= dynamic_limit ? cudaSuccess : cudaErrorInvalidValue;
}

inline void number_threads(const dim3& block) {
  unsigned i = 0;
  for (unsigned z = 0; z < block.z; ++z)
    for (unsigned y = 0; y < block.y; ++y)
      for (unsigned x = 0; x < block.x; ++x, ++i) {
        machine.threads[i].index = {x, y, z};
        machine.threads[i].lane = i % KS_WAVE;
        machine.threads[i].wave = &machine.waves[i / KS_WAVE];
      }
  machine.total = i;
}

inline bool run_grid(size_t shared) {
  for (unsigned z = 0; z < gridDim.z; ++z)
    for (unsigned y = 0; y < gridDim.y; ++y)
      for (unsigned x = 0; x < gridDim.x; ++x) {
        blockIdx = {x, y, z};
        // What a block has not written is no number.
        memset(shared_memory, 0xff, shared);
        if (!run_block()) return false;
      }
  return true;
}

inline void run(const dim3& grid, const dim3& block, size_t shared, void (*body)(void*),
                void* data) {
  if (inside_launch) {
    print_where();
    fprintf(stderr, "not emulated on the CPU: a launch from within a kernel\n");
    fail();
  }
  cudaError error = check_shape(grid, block, shared);
  if (error != cudaSuccess) {
    leave(error);
    return;
  }
  const Turn turn;
  machine.body = body;
  machine.body_data = data;
  machine.failure = cudaSuccess;
  inside_launch = true;
  gridDim = grid;
  blockDim = block;
  number_threads(block);
  if (!run_grid(shared)) {
    machine.idle_count = machine.fiber_count = 0;  // what lies on the stacks is given up
    leave(machine.failure);
  }
  inside_launch = false;
}

template <class Call>
struct Launcher {
  Call call;
  dim3 grid, block;
  size_t shared;

  Launcher shaped(dim3 new_grid, dim3 new_block, size_t new_shared = 0, cudaStream_t = nullptr) {
    return {call, new_grid, new_block, new_shared};
  }

  template <class... Arguments>
  void operator()(Arguments... arguments) {
    auto body = [&] { call(arguments...); };
    auto invoke = [](void* data) { (*static_cast<decltype(body)*>(data))(); };
    run(grid, block, shared, invoke, &body);
  }
};

template <class Call>
Launcher<Call> launcher(Call call) {
  return {call, {}, {}, 0};
}

}  // namespace ks_simt

template <class... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                             size_t shared = 0, cudaStream_t stream = nullptr) {
  using Values = std::tuple<std::decay_t<Parameters>*...>;
  Values values;
  size_t next = 0;
  std::apply([&](auto*&... value) { (((void*&)value = arguments[next++]), ...); }, values);
  ks_simt::launcher([&] { std::apply([&](auto*... value) { kernel(*value...); }, values); })
      .shaped(grid, block, shared, stream)();
  return ks_simt::last_error;
}
