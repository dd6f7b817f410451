"""Models and tokenizers as trainings load and write them."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.training import models
from kernel_smith.training.config import Lora, SftSettings
from kernel_smith.training.models import (
    adapter_config,
    load_model,
    load_tokenizer,
    merge_adapter,
    need_libraries,
)


def test_a_base_model_gets_a_plain_template_whose_answers_end(tiny_model: Path) -> None:
    tokenizer = load_tokenizer(tiny_model)
    asked = [{"role": "system", "content": "S"}, {"role": "user", "content": "U"}]
    question = tokenizer.apply_chat_template(asked, tokenize=False, add_generation_prompt=True)
    assert question == "### System\nS\n\n### User\nU\n\n### Answer\n"
    answered = [*asked, {"role": "assistant", "content": "A"}]
    assert tokenizer.apply_chat_template(answered, tokenize=False) == question + "A<end>"
    assert tokenizer.pad_token == "<end>"


def test_a_template_that_the_model_brings_is_kept(tiny_model: Path, tmp_path: Path) -> None:
    folder = tmp_path / "model"
    shutil.copytree(tiny_model, folder)
    (folder / "chat_template.jinja").write_text("{{ messages[0]['content'] }}")
    tokenizer = load_tokenizer(folder)
    asked = [{"role": "user", "content": "U"}]
    assert tokenizer.apply_chat_template(asked, tokenize=False) == "U"


def test_an_adapter_is_merged_into_a_model_that_answers_alike(
    tiny_model: Path, tmp_path: Path
) -> None:
    import torch
    from peft import get_peft_model
    from transformers import AutoModelForCausalLM

    settings = SftSettings(data=Path("d"), model=tiny_model, output=tmp_path / "o")
    model = get_peft_model(load_model(settings), adapter_config(Lora(rank=2)))
    for name, weight in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weight, std=0.1)
    adapter, merged = tmp_path / "adapter", tmp_path / "merged"
    model.save_pretrained(adapter)
    load_tokenizer(tiny_model).save_pretrained(adapter)
    merge_adapter(adapter, merged)

    tokens = torch.arange(1, 30)[None]
    loaded = AutoModelForCausalLM.from_pretrained(merged, dtype=torch.float32)
    base = AutoModelForCausalLM.from_pretrained(tiny_model, dtype=torch.float32)
    with torch.no_grad():
        expected, got = model(tokens).logits, loaded(tokens).logits
        before = base(tokens).logits
    assert (got - expected).abs().max() < 0.1 * (got - before).abs().max()
    assert load_tokenizer(merged).chat_template == models.PLAIN_TEMPLATE


def test_what_is_no_model_or_no_adapter_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"there is no config\.json"):
        load_tokenizer(tmp_path)
    with pytest.raises(BadInput, match="is no adapter"):
        merge_adapter(tmp_path, tmp_path / "out")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(BadInput, match="cannot be loaded"):
        load_model(SftSettings(data=Path("d"), model=tmp_path, output=tmp_path))


def test_a_missing_library_is_named_with_the_command_that_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(models, "_NEEDED", ("torch", "no_such_trainer"))
    with pytest.raises(MissingPrerequisite, match="training needs no_such_trainer") as caught:
        need_libraries()
    assert caught.value.hint == "pip install 'kernel-smith[train]'"


def test_the_trainers_do_not_import_trackers_that_they_report_nothing_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from transformers.integrations import is_mlflow_available

    monkeypatch.delenv("DISABLE_MLFLOW_INTEGRATION", raising=False)
    need_libraries()
    assert not is_mlflow_available()
