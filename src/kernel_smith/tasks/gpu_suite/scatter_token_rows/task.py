"""Replace the placeholder tokens of a text by image vectors, in order: how vision language models
insert what their image encoder saw into the prompt."""

import torch

TASK = {
    "family": "indexing",
    "workloads": {
        "small": {"tokens": 101, "images": 40, "hidden": 130},
        "prompt": {"tokens": 8192, "images": 2880, "hidden": 4096, "dtype": "bfloat16"},
        "odd": {"tokens": 5001, "images": 1731, "hidden": 3585, "dtype": "float16"},
    },
}


class Model(torch.nn.Module):
    def forward(
        self, text: torch.Tensor, images: torch.Tensor, placeholder: torch.Tensor
    ) -> torch.Tensor:
        number = (placeholder.cumsum(dim=0) - 1).clamp(0, images.shape[0] - 1)
        return torch.where(placeholder[:, None], images[number], text)


def get_inputs(
    tokens: int = 8192, images: int = 2880, hidden: int = 4096, dtype: str = "float32"
) -> list[torch.Tensor]:
    kind = getattr(torch, dtype)
    text = torch.randn(tokens, hidden, dtype=kind)
    placeholder = torch.randperm(tokens) < images
    return [text, torch.randn(images, hidden, dtype=kind), placeholder]
