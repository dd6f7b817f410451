"""Write each request's new keys and values into its cache at its current length; the new caches
are returned. A decoding step does this before attention."""

import torch

TASK = {
    "family": "kv-cache",
    "workloads": {
        "small": {"batch": 3, "capacity": 33, "heads": 3, "features": 40},
        "decode": {
            "batch": 32,
            "capacity": 1024,
            "heads": 8,
            "features": 128,
            "dtype": "bfloat16",
        },
        "odd": {"batch": 7, "capacity": 2003, "heads": 5, "features": 72},
    },
}


class Model(torch.nn.Module):
    def forward(
        self,
        keys: torch.Tensor,
        values: torch.Tensor,
        new_key: torch.Tensor,
        new_value: torch.Tensor,
        lengths: torch.Tensor,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        positions = torch.arange(keys.shape[1], device=keys.device)
        here = (positions == lengths[:, None])[..., None, None]
        return torch.where(here, new_key[:, None], keys), torch.where(
            here, new_value[:, None], values
        )


def get_inputs(
    batch: int = 32,
    capacity: int = 1024,
    heads: int = 8,
    features: int = 128,
    dtype: str = "float32",
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    cache, new = (batch, capacity, heads, features), (batch, heads, features)
    keys, values = torch.randn(cache, dtype=kind), torch.randn(cache, dtype=kind)
    new_key, new_value = torch.randn(new, dtype=kind) * 2, torch.randn(new, dtype=kind) * 2
    return [keys, values, new_key, new_value, torch.randint(capacity, (batch,))]
