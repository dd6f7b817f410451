"""Log probability of the chosen token and entropy of the distribution, per position: what policy
gradient training of language models (PPO, GRPO) needs of every rollout."""

import torch

TASK = {
    "family": "loss",
    "workloads": {
        "small": {"tokens": 6, "vocabulary": 32003},
        "rollout": {"tokens": 2048, "vocabulary": 128256, "dtype": "bfloat16"},
        "odd": {"tokens": 999, "vocabulary": 151665},
    },
}


class Model(torch.nn.Module):
    def forward(
        self, logits: torch.Tensor, chosen: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        wide = logits.to(torch.promote_types(logits.dtype, torch.float32))
        logs = torch.log_softmax(wide, dim=-1)
        entropy = -(logs.exp() * logs).sum(dim=-1)
        return logs.gather(-1, chosen[:, None]).squeeze(-1), entropy


def get_inputs(
    tokens: int = 2048, vocabulary: int = 128256, dtype: str = "float32"
) -> list[torch.Tensor]:
    # Models are sure of some tokens and not of others: another spread for each.
    spread = torch.rand(tokens, 1, dtype=getattr(torch, dtype)) * 4 + 1
    logits = torch.randn(tokens, vocabulary, dtype=getattr(torch, dtype)) * spread
    return [logits, torch.randint(vocabulary, (tokens,))]
