"""The most likely token of each request and its logit, the lowest number among equals: greedy
decoding over a large vocabulary."""

import torch

TASK = {
    "family": "reduction",
    "workloads": {
        "small": {"requests": 5, "vocabulary": 32003},
        "llama": {"requests": 256, "vocabulary": 128256, "dtype": "bfloat16"},
        "single": {"requests": 1, "vocabulary": 151936},
        "odd": {"requests": 33, "vocabulary": 50257, "dtype": "float16"},
    },
    "library_calls": False,
}


class Model(torch.nn.Module):
    def forward(self, logits: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        largest = logits.amax(dim=-1, keepdim=True)
        vocabulary = logits.shape[-1]
        # Not argmax, which does not say which of equal values it takes.
        numbers = torch.arange(vocabulary, device=logits.device)
        token = torch.where(logits == largest, numbers, vocabulary).amin(dim=-1)
        return token, largest.squeeze(-1)


def get_inputs(
    requests: int = 256, vocabulary: int = 128256, dtype: str = "float32"
) -> list[torch.Tensor]:
    return [torch.randn(requests, vocabulary, dtype=getattr(torch, dtype)) * 3]
