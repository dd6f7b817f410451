"""The DPO loss and both rewards of pairs of answers, from the policy's and the reference model's
log probabilities of their tokens, padding left out."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "loss",
    "workloads": {
        "small": {"pairs": 9, "length": 301},
        "batch": {"pairs": 512, "length": 2048},
        "long": {"pairs": 256, "length": 8192, "dtype": "bfloat16"},
        "odd": {"pairs": 509, "length": 4093},
    },
}


class Model(torch.nn.Module):
    def __init__(self, strength: float) -> None:
        super().__init__()
        self.strength = strength

    def forward(
        self, policy: torch.Tensor, reference: torch.Tensor, lengths: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        wide = torch.promote_types(policy.dtype, torch.float32)
        positions = torch.arange(policy.shape[-1], device=policy.device)
        gain = policy.to(wide) - reference.to(wide)
        rewards = torch.where(positions < lengths[..., None], gain, 0).sum(dim=-1) * self.strength
        return -F.logsigmoid(rewards[0] - rewards[1]), rewards


def get_inputs(pairs: int = 512, length: int = 2048, dtype: str = "float32") -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    reference = -torch.rand(2, pairs, length, dtype=kind) * 3
    policy = reference + torch.randn(2, pairs, length, dtype=kind) * 0.25
    return [policy, reference, torch.randint(length // 4 + 1, length + 1, (2, pairs))]


def get_init_inputs() -> list[float]:
    return [0.5]
