"""Gather each token's expert outputs from their place in the sorted order and add them up by their
routing weights, with the shared expert's output: the end of a mixture-of-experts layer."""

import torch

TASK = {
    "family": "moe-routing",
    "workloads": {
        "small": {"tokens": 13, "chosen": 3, "hidden": 1003},
        "decode": {"tokens": 128, "chosen": 8, "hidden": 7168, "dtype": "bfloat16"},
        "prefill": {"tokens": 4096, "chosen": 8, "hidden": 7168, "dtype": "bfloat16"},
        "odd": {"tokens": 1999, "chosen": 6, "hidden": 5001},
    },
}


class Model(torch.nn.Module):
    def forward(
        self,
        outputs: torch.Tensor,
        places: torch.Tensor,
        weights: torch.Tensor,
        shared: torch.Tensor,
    ) -> torch.Tensor:
        mixed = (outputs[places] * weights[..., None]).sum(dim=1)
        return (mixed + shared).to(shared.dtype)


def get_inputs(
    tokens: int = 128, chosen: int = 8, hidden: int = 7168, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    outputs = torch.randn(tokens * chosen, hidden, dtype=kind)
    places = torch.randperm(tokens * chosen).view(tokens, chosen)
    weights = torch.softmax(torch.randn(tokens, chosen), dim=-1) * 2.5
    return [outputs, places, weights, torch.randn(tokens, hidden, dtype=kind)]
