"""What a model that chooses is trained for: every letter's worth is known, so nothing is sampled.

The policy is over the letters that were judged; of all others nobody knows what they are worth.
"""

from __future__ import annotations

from typing import Any

Tensor = Any
"""A torch tensor: a row for each question, a column for each letter."""


def log_policy(scores: Tensor, judged: Tensor) -> Tensor:
    """Return the logarithm of the policy over judged letters; 0 for all others."""
    logarithms = scores.masked_fill(~judged, -float("inf")).log_softmax(-1)
    return logarithms.masked_fill(~judged, 0.0)


def unlikelihood_of_gains(logarithms: Tensor, rewards: Tensor) -> Tensor:
    """SFT: the cross-entropy towards what certainly gained, by how much. Something must have."""
    wanted = rewards / rewards.sum(-1, keepdim=True)
    return -(wanted * logarithms).sum(-1).mean()


def lost_reward(logarithms: Tensor, rewards: Tensor, judged: Tensor, entropy: float) -> Tensor:
    """RL: what is to be expected, and a bonus for the policy's entropy; less is better."""
    policy = logarithms.exp() * judged
    return -(policy * (rewards - entropy * logarithms)).sum(-1).mean()
