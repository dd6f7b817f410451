"""Add up rows by sorted segment numbers, into a fixed number of segments of which some are empty:
the readout of batched graphs, and the gradient of repeated embeddings."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"rows": 421, "features": 133, "segments": 61},
        "large": {"rows": 65536, "features": 256, "segments": 4096},
        "half": {"rows": 131072, "features": 256, "segments": 4096, "dtype": "bfloat16"},
        "odd": {"rows": 40009, "features": 197, "segments": 3001},
    },
    # On a GPU the library adds with atomics, in any order.
    "admit": ["random-reference"],
    "library_calls": False,
}


class Model(torch.nn.Module):
    def __init__(self, segments: int) -> None:
        super().__init__()
        self.segments = segments

    def forward(self, x: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        wide = x.to(torch.promote_types(x.dtype, torch.float32))
        sums = wide.new_zeros(self.segments, x.shape[1]).index_add_(0, ids, wide)
        return sums.to(x.dtype)


def get_inputs(
    rows: int = 65536, features: int = 256, segments: int = 4096, dtype: str = "float32"
) -> list[torch.Tensor]:
    used = torch.randperm(segments)[: segments * 3 // 4]
    ids = used[torch.randint(len(used), (rows,))].sort().values
    return [torch.randn(rows, features).to(getattr(torch, dtype)), ids]


def get_init_inputs(segments: int = 4096) -> list[int]:
    return [segments]
