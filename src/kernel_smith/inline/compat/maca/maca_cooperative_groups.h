#error "cooperative groups are not emulated on NVIDIA for waves of 64: use shuffles and __syncthreads"
