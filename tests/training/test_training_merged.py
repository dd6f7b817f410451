"""An adapter within the weights: the same answers, and nothing left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from kernel_smith.training.merged import merged

TOKENS = torch.arange(1, 33).view(1, -1)


@pytest.fixture(params=[torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
def model(tiny_model: Path, request: pytest.FixtureRequest) -> Any:
    """With an adapter that does something."""
    from peft import LoraConfig, get_peft_model
    from transformers import AutoModelForCausalLM

    base = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=request.param)
    adapter = LoraConfig(r=4, lora_alpha=64, target_modules="all-linear", task_type="CAUSAL_LM")
    torch.manual_seed(0)
    model = get_peft_model(base, adapter)
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.05)
    return model.eval()


def state(model: Any) -> dict[str, tuple[torch.Tensor, bool]]:
    return {name: (w.detach().clone(), w.requires_grad) for name, w in model.named_parameters()}


def logits(model: Any) -> torch.Tensor:
    with torch.no_grad():
        answer: torch.Tensor = model(TOKENS).logits.float()
    return answer


def is_unchanged(model: Any, before: dict[str, tuple[torch.Tensor, bool]]) -> bool:
    return all(
        torch.equal(weight, before[name][0]) and weight.requires_grad == before[name][1]
        for name, weight in model.named_parameters()
    )


@pytest.mark.filterwarnings("ignore::UserWarning")  # some CPUs multiply bfloat16 by detours
def test_what_is_written_is_what_the_adapter_says(model: Any) -> None:
    before = state(model)
    expected = logits(model)
    with model.disable_adapter():
        without = logits(model)
    with merged(model):
        found = logits(model)
    error = (found - expected).norm() / (expected - without).norm()
    assert error < (1e-5 if model.dtype == torch.float32 else 0.1)
    assert is_unchanged(model, before)
    assert torch.equal(logits(model), expected)


def test_an_error_leaves_the_weights_as_they_were(model: Any) -> None:
    before = state(model)
    with pytest.raises(KeyboardInterrupt), merged(model):
        raise KeyboardInterrupt
    assert is_unchanged(model, before)


def test_a_model_without_an_adapter_stays_as_it_is(tiny_model: Path) -> None:
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(tiny_model)
    before = state(model)
    with merged(model):
        assert is_unchanged(model, before)
