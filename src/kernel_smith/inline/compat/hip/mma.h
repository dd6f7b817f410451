#error "matrix instructions are not emulated on NVIDIA for waves of 64"
