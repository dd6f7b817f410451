"""A model that is small enough to be trained in a test, and rows to train it on."""

from __future__ import annotations

import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.records import Task
from kernel_smith.training import running

WriteRows = Callable[[str, list[dict[str, Any]]], Path]


@pytest.fixture(scope="session")
def trainers() -> None:
    """What takes seconds to import. Each training collects garbage several times: not there."""
    with pytest.MonkeyPatch.context() as patch:
        # Nothing is reported there, and it would be imported where it is installed.
        patch.setenv("DISABLE_MLFLOW_INTEGRATION", "TRUE")
        patch.setitem(sys.modules, "wandb", None)
        import peft  # noqa: F401
        from transformers import Trainer  # noqa: F401
        from trl import GRPOTrainer, SFTTrainer  # noqa: F401

    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_curves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trainings of a few steps would spend more on the picture of them than on the steps."""
    monkeypatch.setattr(running, "draw_curves", lambda *_: False)


@pytest.fixture(scope="session")
def tiny_model(trainers: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two layers with random weights and a tokenizer of bytes, without a chat template."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {token: number for number, token in enumerate(["<end>", *alphabet])}
    tokenizer = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    folder = tmp_path_factory.mktemp("tiny-model")
    PreTrainedTokenizerFast(tokenizer_object=tokenizer, eos_token="<end>").save_pretrained(folder)
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=len(vocabulary),
        hidden_size=64,
        intermediate_size=128,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=1024,
        bos_token_id=None,
        eos_token_id=0,
    )
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


@pytest.fixture
def write_rows(tmp_path: Path) -> WriteRows:
    """Writes a data set: `write_rows("rl", rows)` is its folder."""

    def write(name: str, rows: list[dict[str, Any]]) -> Path:
        folder = tmp_path / name
        folder.mkdir()
        lines = "".join(json.dumps(row) + "\n" for row in rows)
        (folder / "train.jsonl").write_text(lines, encoding="utf-8")
        return folder

    return write


@pytest.fixture
def sft_rows() -> list[dict[str, Any]]:
    return [
        {
            "id": f"row-{number}",
            "prompt": [
                {"role": "system", "content": "Write kernels."},
                {"role": "user", "content": f"Question {number}"},
            ],
            "completion": [{"role": "assistant", "content": "y = 2 * x"}],
            "task_name": "double",
            "family": "elementwise",
        }
        for number in range(4)
    ]


@pytest.fixture
def rl_rows(small_task: Task, honest_source: str) -> list[dict[str, Any]]:
    return [
        {
            "id": f"row-{number}",
            "prompt": [{"role": "user", "content": f"Question {number}"}],
            "task": small_task.model_dump_json(),
            "backend": "cpp",
            "parent": honest_source,
            "mode": "full",
            "gain": 1.5,
        }
        for number in range(4)
    ]
