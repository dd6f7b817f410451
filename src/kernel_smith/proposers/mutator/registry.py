"""All edits that the mutator knows, for every backend, and what is expected of them."""

from kernel_smith.proposers.mutator.cpp.edits import CPP_EDITS
from kernel_smith.proposers.mutator.gpu.edits import GPU_EDITS
from kernel_smith.proposers.mutator.triton.edits import TRITON_EDITS

EDITS = (*CPP_EDITS, *TRITON_EDITS, *GPU_EDITS)

# Successes taken on trust, before a run knows better: 1 where nothing is said. These change what
# the hardware does (threads, vectors, fewer passes), others mostly how the compiler goes about it.
PROMISES = {
    "parallelise-loop": 4.0,
    "private-buffer": 4.0,
    "vector-exponential": 4.0,
    "single-precision": 3.0,
    "simd-loop": 2.0,
    "split-accumulator": 2.0,
    "interchange-loops": 2.0,
    "jam-iterations": 2.0,
    "narrow-range": 2.0,
    "split-by-quotient": 2.0,
    "persistent-programs": 2.0,
    "group-programs": 2.0,
    "rows-per-program": 2.0,
    "pipeline-loop": 2.0,
    "pack-elements": 4.0,
    "pack-loop": 4.0,
    "fuse-moments": 3.0,
    "grid-stride": 2.0,
    "split-thread-sum": 2.0,
    "wave-reduction": 2.0,
}
