#error "not emulated on the CPU: tensor cores (wmma)"
