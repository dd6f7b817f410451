"""What tests and benchmarks of kernel-smith, and of its plugins, can build on."""
