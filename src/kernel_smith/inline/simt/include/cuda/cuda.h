#error "not emulated on the CPU: the driver API (cuda.h)"
