// The runtime's functions that launchers call. Device memory is the host's, and nothing is
// asynchronous: a call has done its work when it returns.
#pragma once

struct KS_PUBLIC CUevent_st;
typedef CUevent_st* cudaEvent_t;

enum KS_PUBLIC cudaMemcpyKind {
  cudaMemcpyHostToHost,
  cudaMemcpyHostToDevice,
  cudaMemcpyDeviceToHost,
  cudaMemcpyDeviceToDevice,
  cudaMemcpyDefault,
};
enum KS_PUBLIC cudaFuncAttribute {
  cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
  cudaFuncAttributePreferredSharedMemoryCarveout = 9,
};
enum KS_PUBLIC cudaFuncCache {
  cudaFuncCachePreferNone,
  cudaFuncCachePreferShared,
  cudaFuncCachePreferL1,
  cudaFuncCachePreferEqual,
};
enum KS_PUBLIC cudaDeviceAttr {
  cudaDevAttrMaxThreadsPerBlock = 1,
  cudaDevAttrMaxSharedMemoryPerBlock = 8,
  cudaDevAttrWarpSize = 10,
  cudaDevAttrMaxRegistersPerBlock = 12,
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrMaxThreadsPerMultiProcessor = 39,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrCooperativeLaunch = 95,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
enum { cudaEventDefault = 0, cudaEventDisableTiming = 2 };

namespace ks_simt {

// A small device, so that launches sized by it stay small.
constexpr int multiprocessors = 4;
constexpr int threads_per_multiprocessor = 2048;

inline cudaError copy(void* target, const void* source, size_t bytes) {
  if (bytes != 0) memmove(target, source, bytes);
  return cudaSuccess;
}

inline int attribute(cudaDeviceAttr name) {
  switch (name) {
    case cudaDevAttrMaxThreadsPerBlock: return most_threads;
    case cudaDevAttrMaxSharedMemoryPerBlock: return (KS_WAVE == 32 ? 48 : 64) << 10;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: return int(most_shared);
    case cudaDevAttrMaxSharedMemoryPerMultiprocessor: return int(most_shared) + 1024;
    case cudaDevAttrWarpSize: return KS_WAVE;
    case cudaDevAttrMaxRegistersPerBlock: return 65536;
    case cudaDevAttrMultiProcessorCount: return multiprocessors;
    case cudaDevAttrMaxThreadsPerMultiProcessor: return threads_per_multiprocessor;
    case cudaDevAttrComputeCapabilityMajor: return 9;
    default: return 0;
  }
}

}  // namespace ks_simt

struct cudaDeviceProp {
  char name[256];
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
  int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor;
  int multiProcessorCount, major, minor, l2CacheSize;
  int maxThreadsDim[3], maxGridSize[3];
};

inline cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
inline cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
inline cudaError_t cudaSetDevice(int device) {
  return ks_simt::leave(device == 0 ? cudaSuccess : cudaErrorInvalidDevice);
}
inline cudaError_t cudaDeviceSynchronize() { return ks_simt::last_error; }
inline cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr name, int device) {
  *value = ks_simt::attribute(name);
  return cudaSetDevice(device);
}
inline cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  *properties = {};
  strcpy(properties->name, "kernel-smith's emulation on the CPU");
  properties->totalGlobalMem = size_t(1) << 30;
  properties->sharedMemPerBlock = size_t(ks_simt::attribute(cudaDevAttrMaxSharedMemoryPerBlock));
  properties->sharedMemPerBlockOptin = ks_simt::most_shared;
  properties->sharedMemPerMultiprocessor = ks_simt::most_shared + 1024;
  properties->regsPerBlock = 65536;
  properties->warpSize = KS_WAVE;
  properties->maxThreadsPerBlock = ks_simt::most_threads;
  properties->maxThreadsPerMultiProcessor = ks_simt::threads_per_multiprocessor;
  properties->multiProcessorCount = ks_simt::multiprocessors;
  properties->major = 9;
  properties->l2CacheSize = 8 << 20;
  for (int i = 0; i < 3; ++i) properties->maxThreadsDim[i] = i < 2 ? 1024 : 64;
  for (int i = 0; i < 3; ++i) properties->maxGridSize[i] = i == 0 ? 0x7fffffff : 65535;
  return cudaSetDevice(device);
}

template <class T>
cudaError_t cudaMalloc(T** address, size_t bytes) {
  *address = static_cast<T*>(aligned_alloc(256, (bytes + 255) / 256 * 256));
  return ks_simt::leave(*address != nullptr ? cudaSuccess : cudaErrorMemoryAllocation);
}
template <class T>
cudaError_t cudaMallocAsync(T** address, size_t bytes, cudaStream_t) {
  return cudaMalloc(address, bytes);
}
inline cudaError_t cudaFree(void* address) { return free(address), cudaSuccess; }
inline cudaError_t cudaFreeAsync(void* address, cudaStream_t) { return cudaFree(address); }

inline cudaError_t cudaMemset(void* address, int value, size_t bytes) {
  if (bytes != 0) memset(address, value, bytes);
  return cudaSuccess;
}
inline cudaError_t cudaMemsetAsync(void* address, int value, size_t bytes,
                                   cudaStream_t = nullptr) {
  return cudaMemset(address, value, bytes);
}
inline cudaError_t cudaMemcpy(void* target, const void* source, size_t bytes, cudaMemcpyKind) {
  return ks_simt::copy(target, source, bytes);
}
inline cudaError_t cudaMemcpyAsync(void* target, const void* source, size_t bytes, cudaMemcpyKind,
                                   cudaStream_t = nullptr) {
  return ks_simt::copy(target, source, bytes);
}
template <class T>
cudaError_t cudaMemcpyToSymbol(T& symbol, const void* source, size_t bytes, size_t offset = 0,
                               cudaMemcpyKind = cudaMemcpyHostToDevice) {
  return ks_simt::copy((char*)&symbol + offset, source, bytes);
}
template <class T>
cudaError_t cudaMemcpyToSymbolAsync(T& symbol, const void* source, size_t bytes, size_t offset = 0,
                                    cudaMemcpyKind = cudaMemcpyHostToDevice,
                                    cudaStream_t = nullptr) {
  return ks_simt::copy((char*)&symbol + offset, source, bytes);
}
template <class T>
cudaError_t cudaMemcpyFromSymbol(void* target, const T& symbol, size_t bytes, size_t offset = 0,
                                 cudaMemcpyKind = cudaMemcpyDeviceToHost) {
  return ks_simt::copy(target, (const char*)&symbol + offset, bytes);
}
template <class T>
cudaError_t cudaGetSymbolAddress(void** address, T& symbol) {
  return *address = (void*)&symbol, cudaSuccess;
}

inline cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = nullptr, cudaSuccess; }
inline cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned) {
  return cudaStreamCreate(stream);
}
inline cudaError_t cudaStreamDestroy(cudaStream_t) { return cudaSuccess; }
inline cudaError_t cudaStreamSynchronize(cudaStream_t) { return ks_simt::last_error; }
inline cudaError_t cudaStreamWaitEvent(cudaStream_t, cudaEvent_t, unsigned = 0) {
  return cudaSuccess;
}
inline cudaError_t cudaEventCreate(cudaEvent_t* event) { return *event = nullptr, cudaSuccess; }
inline cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned) {
  return cudaEventCreate(event);
}
inline cudaError_t cudaEventDestroy(cudaEvent_t) { return cudaSuccess; }
inline cudaError_t cudaEventRecord(cudaEvent_t, cudaStream_t = nullptr) { return cudaSuccess; }
inline cudaError_t cudaEventSynchronize(cudaEvent_t) { return cudaSuccess; }

// Kernels are not told apart: what one may use, all may.
template <class Kernel>
cudaError_t cudaFuncSetAttribute(Kernel, cudaFuncAttribute name, int value) {
  if (name != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || value > int(ks_simt::most_shared)) return ks_simt::leave(cudaErrorInvalidValue);
  ks_simt::dynamic_limit = std::max(ks_simt::dynamic_limit, size_t(value));
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaFuncSetCacheConfig(Kernel, cudaFuncCache) {
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int threads,
                                                          size_t shared) {
  if (threads < 1 || threads > int(ks_simt::most_threads)) {
    *blocks = 0;
    return ks_simt::leave(cudaErrorInvalidValue);
  }
  int by_threads = ks_simt::threads_per_multiprocessor / threads;
  size_t by_memory = shared != 0 ? (ks_simt::most_shared + 1024) / shared : 32;
  *blocks = int(std::min<size_t>({size_t(by_threads), by_memory, 32}));
  return cudaSuccess;
}
template <class Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* grid, int* block, Kernel, size_t = 0,
                                               int limit = 0) {
  *block = limit > 0 && limit < 1024 ? limit : 1024;
  *grid = ks_simt::multiprocessors * ks_simt::threads_per_multiprocessor / *block;
  return cudaSuccess;
}
