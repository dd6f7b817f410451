#error "not emulated on the CPU: the CUB library"
