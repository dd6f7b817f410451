"""The state-space recurrence of Mamba-2 over whole sequences: a decaying matrix state per head,
updated by key and value and read by the query, computed chunk by chunk."""

import torch

TASK = {
    "family": "scan",
    "precision": "tf32",
    "workloads": {
        "small": {"batch": 1, "heads": 3, "chunks": 3, "features": 24, "states": 20},
        "prefill": {"batch": 1, "heads": 64, "chunks": 32, "features": 64, "states": 128},
        "training": {"batch": 4, "heads": 24, "chunks": 16, "features": 64, "states": 128},
        "odd": {"batch": 2, "heads": 17, "chunks": 11, "features": 72, "states": 100},
    },
    # Without "large" and "spikes": decays of many powers of e leave nothing of the state.
    "variants": ["small", "sorted", "ties"],
}

CHUNK = 64


class Model(torch.nn.Module):
    def forward(
        self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, decay: torch.Tensor
    ) -> torch.Tensor:
        batch, heads, length, features = value.shape
        rates = -decay.abs()
        state = value.new_zeros(batch, heads, query.shape[-1], features)
        earlier = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=value.device).tril()
        outputs = []
        for start in range(0, length, CHUNK):
            q, k, v, rate = (x[:, :, start : start + CHUNK] for x in (query, key, value, rates))
            total = rate.cumsum(dim=-1)
            between = (total[..., :, None] - total[..., None, :]).masked_fill(
                ~earlier, float("-inf")
            )
            within = (q @ k.transpose(-1, -2) * between.exp()) @ v
            outputs.append(within + total.exp()[..., None] * (q @ state))
            last = total[..., -1:]
            kept = k * (last - total).exp()[..., None]
            state = last.exp()[..., None] * state + kept.transpose(-1, -2) @ v
        return torch.cat(outputs, dim=2)


def get_inputs(
    batch: int = 1, heads: int = 64, chunks: int = 32, features: int = 64, states: int = 128
) -> list[torch.Tensor]:
    length = chunks * CHUNK
    query = torch.randn(batch, heads, length, states) * states**-0.5
    key = torch.randn(batch, heads, length, states)
    value = torch.randn(batch, heads, length, features)
    return [query, key, value, torch.rand(batch, heads, length) * 0.2]
