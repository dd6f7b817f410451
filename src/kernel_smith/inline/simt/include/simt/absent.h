// What is not emulated says so when it is compiled.
#pragma once

namespace ks_simt {

// Stands where a builtin of another compiler stood, so that one message remains: its refusal.
struct Anything {
  template <class T>
  operator T() const;
};
struct Absent {
  template <class... Arguments>
  Anything operator()(Arguments&&...) const;
};
constexpr Absent absent{};

template <class...>
constexpr bool never = false;

}  // namespace ks_simt

template <class... Arguments>
cudaError_t cudaLaunchCooperativeKernel(Arguments&&...) {
  static_assert(ks_simt::never<Arguments...>,
                "not emulated on the CPU: cooperative launches (blocks run one after the other)");
  return cudaErrorNotSupported;
}
template <class... Arguments>
cudaError_t cudaLaunchKernelEx(Arguments&&...) {
  static_assert(ks_simt::never<Arguments...>,
                "not emulated on the CPU: cudaLaunchKernelEx (clusters and launch attributes)");
  return cudaErrorNotSupported;
}
