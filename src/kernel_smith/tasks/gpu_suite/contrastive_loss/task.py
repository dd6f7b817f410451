"""The symmetric contrastive loss of CLIP: similarities of all image and text vectors of a batch,
and the cross entropy of the matching ones along both directions, per pair."""

import torch
import torch.nn.functional as F

TASK = {
    "family": "loss",
    "precision": "tf32",
    "workloads": {
        "small": {"pairs": 51, "features": 200},
        "clip": {"pairs": 4096, "features": 768},
        "half": {"pairs": 8192, "features": 512, "dtype": "bfloat16"},
        "odd": {"pairs": 2999, "features": 515},
    },
    # Without "large" and "spikes": similarities of millions make the loss a matter of rounding.
    "variants": ["small", "sorted", "ties"],
}


class Model(torch.nn.Module):
    def forward(self, images: torch.Tensor, texts: torch.Tensor) -> torch.Tensor:
        similarity = images @ texts.T * 2.0
        similarity = similarity.to(torch.promote_types(images.dtype, torch.float32))
        matching = torch.arange(images.shape[0], device=images.device)
        of_images = F.cross_entropy(similarity, matching, reduction="none")
        of_texts = F.cross_entropy(similarity.T, matching, reduction="none")
        return (of_images + of_texts) / 2


def get_inputs(
    pairs: int = 4096, features: int = 768, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    scale = features**-0.25
    images = torch.randn(pairs, features, dtype=kind) * scale
    return [images, torch.randn(pairs, features, dtype=kind) * scale + 0.1 * images]
