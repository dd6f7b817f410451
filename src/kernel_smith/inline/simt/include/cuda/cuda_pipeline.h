#error "not emulated on the CPU: asynchronous copies (cuda_pipeline.h)"
