#error "not emulated on the CPU: 8 bit floating point (cuda_fp8.h)"
