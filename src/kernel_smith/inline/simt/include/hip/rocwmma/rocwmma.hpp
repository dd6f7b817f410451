#error "not emulated on the CPU: matrix cores (rocWMMA)"
