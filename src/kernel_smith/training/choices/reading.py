"""A language model that reads a menu: one forward pass, and the scores of all letters."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernel_smith.errors import BadInput
from kernel_smith.proposers.chooser.options import LABELS
from kernel_smith.training.models import load_base, load_tokenizer, with_adapter


class Letters:
    """Questions as tokens, and the token of each letter."""

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.ids = [self._token(label) for label in LABELS]

    def encoded(self, prompt: str) -> list[int]:
        """Return the tokens of a question, up to where the letter is to come."""
        ids: list[int] = self.tokenizer.apply_chat_template(
            [{"role": "user", "content": prompt}],
            tokenize=True,
            add_generation_prompt=True,
            return_dict=False,
        )
        return ids

    def batch(self, questions: Sequence[Sequence[int]]) -> dict[str, Any]:
        """Return questions as tensors, padded in front, so that all of them end together."""
        import torch

        longest = max(map(len, questions))
        pad = self.tokenizer.pad_token_id
        ids = [[pad] * (longest - len(own)) + list(own) for own in questions]
        mask = [[0] * (longest - len(own)) + [1] * len(own) for own in questions]
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.tensor(mask)}

    def _token(self, label: str) -> int:
        ids: list[int] = self.tokenizer.encode(label, add_special_tokens=False)
        if len(ids) != 1:
            raise BadInput(
                f"the tokenizer makes {len(ids)} tokens of the letter {label}, expected one",
                hint="choose a model whose tokenizer has all letters as tokens",
            )
        return ids[0]


def letter_scores(model: Any, asked: dict[str, Any], ids: Sequence[int]) -> Any:
    """Return a row for each question, with the logit of each letter."""
    mask = asked["attention_mask"]
    seen = model(
        input_ids=asked["input_ids"],
        attention_mask=mask,
        position_ids=(mask.cumsum(-1) - 1).clamp(min=0),
        logits_to_keep=1,
    )
    return seen.logits[:, -1, list(ids)].float()


class Reader:
    """A folder's model, or an adapter's with the adapter: on the GPU if there is one."""

    def __init__(self, folder: Path) -> None:
        import torch

        on_gpu = torch.cuda.is_available()
        self.letters = Letters(load_tokenizer(folder))
        model = load_base(folder, torch.bfloat16 if on_gpu else torch.float32)
        self._model = with_adapter(model, folder).to("cuda" if on_gpu else "cpu").eval()

    def odds(self, prompts: Sequence[str], options: Sequence[int]) -> list[list[float]]:
        """Return the policy at each question, over the first so many letters."""
        import torch

        asked = self.letters.batch([self.letters.encoded(prompt) for prompt in prompts])
        asked = {name: tensor.to(self._model.device) for name, tensor in asked.items()}
        with torch.inference_mode():
            scores = letter_scores(self._model, asked, self.letters.ids)
        if not scores.isfinite().all():
            raise BadInput("the model's scores are not finite", hint="train or load it anew")
        return [row[:count].softmax(0).tolist() for row, count in zip(scores, options, strict=True)]
