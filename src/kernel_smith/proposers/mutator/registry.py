"""All edits that the mutator knows, for every backend."""

from kernel_smith.proposers.mutator.cpp.edits import CPP_EDITS
from kernel_smith.proposers.mutator.gpu.edits import GPU_EDITS
from kernel_smith.proposers.mutator.triton.edits import TRITON_EDITS

EDITS = (*CPP_EDITS, *TRITON_EDITS, *GPU_EDITS)
