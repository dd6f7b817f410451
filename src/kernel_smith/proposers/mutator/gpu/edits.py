"""All edits of CUDA, MACA and HIP texts."""

from kernel_smith.proposers.mutator.gpu.access import grid_stride, pack_elements, pack_loop
from kernel_smith.proposers.mutator.gpu.fast_math import (
    fast_division,
    fast_intrinsics,
    reciprocal_root,
)
from kernel_smith.proposers.mutator.gpu.hints import (
    launch_bounds,
    read_only_loads,
    restrict_pointers,
    streaming_access,
    unroll_thread_loop,
)
from kernel_smith.proposers.mutator.gpu.reductions import fuse_moments, split_thread_sum
from kernel_smith.proposers.mutator.gpu.waves import wave_reduction

GPU_EDITS = (
    grid_stride,
    pack_elements,
    pack_loop,
    split_thread_sum,
    fuse_moments,
    wave_reduction,
    unroll_thread_loop,
    launch_bounds,
    restrict_pointers,
    read_only_loads,
    streaming_access,
    fast_intrinsics,
    fast_division,
    reciprocal_root,
)
