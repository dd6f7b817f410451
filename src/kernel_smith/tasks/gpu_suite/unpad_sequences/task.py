"""Pack the valid tokens of a padded batch one after the other, and give every packed token its
sequence and position: variable-length attention starts so. The unused end is zero."""

import torch

TASK = {
    "family": "indexing",
    "workloads": {
        "small": {"batch": 4, "length": 37, "hidden": 130},
        "training": {"batch": 16, "length": 2048, "hidden": 4096, "dtype": "bfloat16"},
        "odd": {"batch": 33, "length": 513, "hidden": 2003},
    },
}


class Model(torch.nn.Module):
    def forward(
        self, padded: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        batch, length = padded.shape[:2]
        ends = lengths.cumsum(dim=0)
        places = torch.arange(batch * length, device=padded.device)
        sequence = torch.searchsorted(ends, places, right=True)
        used = sequence < batch
        sequence = torch.where(used, sequence, 0)
        position = torch.where(used, places - (ends - lengths)[sequence], 0)
        packed = torch.where(used[:, None], padded[sequence, position], 0)
        return packed, sequence, position


def get_inputs(
    batch: int = 16, length: int = 2048, hidden: int = 4096, dtype: str = "float32"
) -> list[torch.Tensor]:
    padded = torch.randn(batch, length, hidden, dtype=getattr(torch, dtype))
    return [padded, torch.randint(length // 4 + 1, length + 1, (batch,))]
