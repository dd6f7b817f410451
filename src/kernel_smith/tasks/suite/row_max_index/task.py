"""The largest value of each row and where it is: greedy decoding over a vocabulary, or picking a
class. Of equal values the first counts."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "vocabulary": {"rows": 8, "columns": 32003},
        "classes": {"rows": 2048, "columns": 61},
        # Many equal values by nature: bfloat16 has 8 significant bits.
        "bfloat16": {"rows": 16, "columns": 4096, "dtype": "bfloat16"},
    },
}


class Model(torch.nn.Module):
    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        values, indices = logits.max(dim=-1)
        return values, indices


def get_inputs(rows: int = 8, columns: int = 32003, dtype: str = "float32") -> list[torch.Tensor]:
    # Rows of different spread; otherwise all maxima would be nearly the same.
    logits = torch.randn(rows, columns) * (torch.rand(rows, 1) * 4 + 1)
    return [logits.to(getattr(torch, dtype))]
