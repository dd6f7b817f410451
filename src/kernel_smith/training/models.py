"""Loading what is trained, and writing what came of it."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.training.config import Lora, TrainingSettings

_NEEDED = ("torch", "transformers", "trl", "peft", "datasets", "accelerate")
TO_CHOOSE = ("torch", "transformers", "peft", "accelerate")  # without decoding, this is enough
_ADAPTER = "adapter_config.json"

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


def need_libraries(names: Sequence[str] | None = None) -> None:
    """Says how to install what is missing; what is there asks no network and draws no bars."""
    from importlib.util import find_spec

    names = _NEEDED if names is None else names
    missing = [name for name in names if find_spec(name) is None]
    if missing:
        raise MissingPrerequisite(
            f"training needs {', '.join(missing)}", hint="pip install 'kernel-smith[train]'"
        )
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    os.environ.setdefault("HF_HUB_DISABLE_TELEMETRY", "1")  # also for whoever is not offline
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Nothing is reported there, and the trainers import it where it is installed: for seconds.
    os.environ.setdefault("DISABLE_MLFLOW_INTEGRATION", "TRUE")
    import transformers

    if "datasets" in names:
        import datasets

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

    low = bool(settings.lora) and uses_bf16(settings)
    return _load_weights(settings.model, torch.bfloat16 if low else torch.float32)


def load_base(model: Path, dtype: Any) -> Any:
    """Load a model; of an adapter, the one that it was trained on."""
    return _load_weights(base_of(model), dtype)


def with_adapter(base: Any, adapter: Path, *, trainable: bool = False) -> Any:
    """Return a model with an adapter's weights; as it is where the folder holds none."""
    if not is_adapter(adapter):
        return base
    from peft import PeftModel

    return _load(PeftModel, str(adapter), {"is_trainable": trainable}, base)


def is_adapter(folder: Path) -> bool:
    return (folder / _ADAPTER).is_file() and not (folder / "config.json").is_file()


def base_of(model: Path) -> Path:
    """Return the model itself, or the one that an adapter names."""
    if not is_adapter(model):
        return model
    named = Path(json.loads((model / _ADAPTER).read_text("utf-8"))["base_model_name_or_path"])
    if not named.exists():
        raise BadInput(
            f"{model} was trained on {named}, which is not there",
            hint=f"name the model's place as base_model_name_or_path in {model / _ADAPTER}",
        )
    return named


def _load_weights(model: Path, dtype: Any) -> Any:
    from transformers import AutoModelForCausalLM

    folder, more = _place(model)
    if "gguf_file" in more:
        more |= _dequantized()
    return _load(AutoModelForCausalLM, folder, more | {"dtype": dtype})


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

    if not (adapter / _ADAPTER).is_file():
        hint = "give a folder with adapter_config.json, such as OUTPUT/final/adapter"
        raise BadInput(f"{adapter} is no adapter", hint=hint)
    model = _load(AutoPeftModelForCausalLM, str(adapter), {"dtype": torch.bfloat16})
    tokenizer = load_tokenizer(adapter)
    model.merge_and_unload().save_pretrained(output)
    tokenizer.save_pretrained(output)


def _place(model: Path) -> tuple[str, dict[str, Any]]:
    if model.is_file() and model.suffix == ".gguf":
        return str(model.parent), {"gguf_file": model.name}
    if is_adapter(model):
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


def _load(kind: Any, folder: str, more: dict[str, Any], *before: Any) -> Any:
    try:
        return kind.from_pretrained(*before, folder, local_files_only=True, **more)
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
