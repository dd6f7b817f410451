"""Loading what is trained, and writing what came of it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.training.config import Lora, TrainingSettings

_NEEDED = ("torch", "transformers", "trl", "peft", "datasets", "accelerate")

# For models that were never taught a conversation. An answer ends with the end of the text.
PLAIN_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}"
    "{{ '### Answer\\n' + message['content'] + eos_token }}"
    "{% else %}"
    "{{ '### ' + message['role'] | capitalize + '\\n' + message['content'] + '\\n\\n' }}"
    "{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}{{ '### Answer\\n' }}{% endif %}"
)


def need_libraries() -> None:
    """Says how to install what is missing; what is there asks no network and draws no bars."""
    from importlib.util import find_spec

    missing = [name for name in _NEEDED if find_spec(name) is None]
    if missing:
        raise MissingPrerequisite(
            f"training needs {', '.join(missing)}", hint="pip install 'kernel-smith[train]'"
        )
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # also for whoever is not offline
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    import datasets
    import transformers

    datasets.disable_progress_bars()
    transformers.utils.logging.disable_progress_bar()


def uses_bf16(settings: TrainingSettings) -> bool:
    import torch

    if settings.bf16 is not None:
        return settings.bf16
    return torch.cuda.is_available() and torch.cuda.is_bf16_supported()


def load_tokenizer(model: Path) -> Any:
    """With a template for conversations and a token to pad with, whatever the model brings."""
    from transformers import AutoTokenizer

    folder, more = _place(model)
    tokenizer = _load(AutoTokenizer, folder, more)
    if tokenizer.eos_token is None:
        hint = "name an `eos_token` in the tokenizer_config.json of the model"
        raise BadInput(f"the tokenizer of {model} knows no end of a text", hint=hint)
    if tokenizer.chat_template is None:
        tokenizer.chat_template = PLAIN_TEMPLATE
    if tokenizer.pad_token is None:
        tokenizer.pad_token = tokenizer.eos_token
    return tokenizer


def load_model(settings: TrainingSettings) -> Any:
    """Frozen weights may be of low precision; those that are trained may not."""
    import torch
    from transformers import AutoModelForCausalLM

    folder, more = _place(settings.model)
    if "gguf_file" in more:
        more |= _dequantized()
    low = bool(settings.lora) and uses_bf16(settings)
    more["dtype"] = torch.bfloat16 if low else torch.float32
    return _load(AutoModelForCausalLM, folder, more)


def adapter_config(lora: Lora) -> Any:
    from peft import LoraConfig

    targets: str | list[str] = list(lora.targets)
    if lora.targets == ("all-linear",):
        targets = "all-linear"
    return LoraConfig(
        r=lora.rank,
        lora_alpha=lora.alpha,
        lora_dropout=lora.dropout,
        target_modules=targets,
        task_type="CAUSAL_LM",
    )


def save_model(trainer: Any, tokenizer: Any, folder: Path, *, merge: bool) -> None:
    """A model that anything loads; of an adapter also the adapter, in `folder/adapter`."""
    from peft import PeftModel

    model = trainer.accelerator.unwrap_model(trainer.model)
    adapter = folder / "adapter"
    if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:  # no process has all of it
        trainer.save_model(str(adapter if isinstance(model, PeftModel) else folder))
        return
    if isinstance(model, PeftModel):
        model.save_pretrained(adapter)
        tokenizer.save_pretrained(adapter)
        if not merge:
            return
        model = model.merge_and_unload()
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def merge_adapter(adapter: Path, output: Path) -> None:
    """The model that an adapter was trained on, with the adapter in its weights."""
    import torch
    from peft import AutoPeftModelForCausalLM

    if not (adapter / "adapter_config.json").is_file():
        hint = "give a folder with adapter_config.json, such as OUTPUT/final/adapter"
        raise BadInput(f"{adapter} is no adapter", hint=hint)
    model = _load(AutoPeftModelForCausalLM, str(adapter), {"dtype": torch.bfloat16})
    tokenizer = load_tokenizer(adapter)
    model.merge_and_unload().save_pretrained(output)
    tokenizer.save_pretrained(output)


def _place(model: Path) -> tuple[str, dict[str, Any]]:
    if model.is_file() and model.suffix == ".gguf":
        return str(model.parent), {"gguf_file": model.name}
    if (model / "adapter_config.json").is_file() and not (model / "config.json").is_file():
        return str(model), {}
    if not (model / "config.json").is_file():
        raise BadInput(
            f"{model} is no model: there is no config.json",
            hint="give a folder that transformers can load, or a .gguf file; download it first",
        )
    return str(model), {}


def _dequantized() -> dict[str, Any]:
    """How transformers is told to unpack a GGUF file; older versions always do."""
    import transformers

    kind = getattr(transformers, "GgufConfig", None)
    return {} if kind is None else {"quantization_config": kind(dequantize=True)}


def _load(kind: Any, folder: str, more: dict[str, Any]) -> Any:
    try:
        return kind.from_pretrained(folder, local_files_only=True, **more)
    except ImportError as error:
        what = str(error).strip().splitlines()[0]
        raise MissingPrerequisite(
            f"{folder} needs more to be loaded: {what}", hint="pip install gguf"
        ) from None
    except (OSError, ValueError, KeyError) as error:
        what = str(error).strip().splitlines()[0]
        raise BadInput(
            f"{folder} cannot be loaded: {what}",
            hint="try it with transformers' AutoModelForCausalLM.from_pretrained",
        ) from None
