"""Mean of each sequence's valid token vectors, scaled to unit length: how embedding servers turn
the last layer into one vector per text."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"batch": 3, "length": 41, "hidden": 770},
        "queries": {"batch": 256, "length": 512, "hidden": 1024, "dtype": "float16"},
        "documents": {"batch": 8, "length": 8192, "hidden": 4096, "dtype": "bfloat16"},
        "odd": {"batch": 27, "length": 1999, "hidden": 1537},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, hidden: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        wide = hidden.to(torch.promote_types(hidden.dtype, torch.float32))
        positions = torch.arange(hidden.shape[1], device=hidden.device)
        valid = (positions < lengths[:, None])[..., None]
        mean = torch.where(valid, wide, 0).sum(dim=1) / lengths[:, None]
        return (mean / mean.square().sum(dim=-1, keepdim=True).sqrt().clamp_min(1e-12)).to(
            hidden.dtype
        )


def get_inputs(
    batch: int = 256, length: int = 512, hidden: int = 1024, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    topic = torch.randn(batch, 1, hidden, dtype=kind)
    tokens = torch.randn(batch, length, hidden, dtype=kind) + topic
    return [tokens, torch.randint(length // 4 + 1, length + 1, (batch,))]
