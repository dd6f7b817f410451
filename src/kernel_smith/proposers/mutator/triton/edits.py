"""All edits of Triton kernels. Warps and stages of a launch are numbers, and left to the tuner."""

from kernel_smith.proposers.mutator.triton.memory import (
    cache_modifier,
    contiguity_hint,
    eviction_policy,
    narrow_offsets,
    reciprocal,
)
from kernel_smith.proposers.mutator.triton.programs import (
    group_programs,
    persistent,
    pipeline,
    rows_per_program,
    swap_grid_axes,
    unroll,
)

TRITON_EDITS = (
    pipeline,
    unroll,
    group_programs,
    swap_grid_axes,
    persistent,
    rows_per_program,
    eviction_policy,
    cache_modifier,
    contiguity_hint,
    reciprocal,
    narrow_offsets,
)
