"""All edits of Triton kernels. Warps and stages of a launch are numbers, and left to the tuner."""

from kernel_smith.proposers.mutator.triton.aligned_loops import aligned_loop
from kernel_smith.proposers.mutator.triton.aligned_rows import aligned_row
from kernel_smith.proposers.mutator.triton.memory import (
    cache_modifier,
    contiguity_hint,
    eviction_policy,
    narrow_offsets,
    reciprocal,
)
from kernel_smith.proposers.mutator.triton.one_launch import one_launch
from kernel_smith.proposers.mutator.triton.one_pass import one_pass_softmax
from kernel_smith.proposers.mutator.triton.programs import (
    group_programs,
    persistent,
    pipeline,
    rows_per_program,
    swap_grid_axes,
    unroll,
)
from kernel_smith.proposers.mutator.triton.tiles import tiles_in_flight
from kernel_smith.proposers.mutator.triton.whole_programs import unmasked_programs
from kernel_smith.proposers.mutator.triton.whole_rows import row_in_registers

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
    one_launch,
    row_in_registers,
    aligned_row,
    aligned_loop,
    one_pass_softmax,
    tiles_in_flight,
    unmasked_programs,
)
