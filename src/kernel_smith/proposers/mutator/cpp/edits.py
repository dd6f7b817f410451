"""All edits of C++ texts."""

from kernel_smith.proposers.mutator.cpp.arithmetic import hoist_loads, reciprocal, single_precision
from kernel_smith.proposers.mutator.cpp.functions import (
    byte_flags,
    restrict,
    vector_exponential,
)
from kernel_smith.proposers.mutator.cpp.inner_loops import (
    simd,
    specialise,
    split_accumulator,
    unroll,
)
from kernel_smith.proposers.mutator.cpp.kept_values import keep_values
from kernel_smith.proposers.mutator.cpp.nests import interchange, jam, tile
from kernel_smith.proposers.mutator.cpp.ranges import narrow_range, split_by_quotient
from kernel_smith.proposers.mutator.cpp.threads import (
    collapse,
    parallelise,
    private_buffer,
    schedule,
)

CPP_EDITS = (
    parallelise,
    collapse,
    schedule,
    private_buffer,
    simd,
    unroll,
    split_accumulator,
    specialise,
    interchange,
    tile,
    jam,
    split_by_quotient,
    narrow_range,
    reciprocal,
    hoist_loads,
    keep_values,
    single_precision,
    restrict,
    byte_flags,
    vector_exponential,
)
