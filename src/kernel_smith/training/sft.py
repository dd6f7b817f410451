"""Supervised fine-tuning: learning from answers that were good. Only answers count in the loss."""

from __future__ import annotations

from typing import Any

from kernel_smith.training.config import SftSettings
from kernel_smith.training.folder import Folder
from kernel_smith.training.journal import Journal
from kernel_smith.training.models import (
    adapter_config,
    load_model,
    load_tokenizer,
    need_libraries,
)
from kernel_smith.training.rows import data_files, fingerprint, need_rows, read_rows
from kernel_smith.training.running import (
    Report,
    Row,
    Trained,
    chat_tokens,
    common_arguments,
    short_enough,
    train,
)


def train_sft(
    settings: SftSettings, report: Report, *, again: str = "the same call again"
) -> Trained:
    """Trains on rows of the format `trl-sft`, on from the last checkpoint if there is one."""
    need_libraries()
    rows = need_rows(settings.data, "sft")
    held_out = read_rows(data_files(settings.data, "validation"), "sft")
    folder = Folder("sft", settings, fingerprint(data_files(settings.data)))
    checkpoint = folder.open()
    report("loading the model" if checkpoint is None else f"going on from {checkpoint}")
    tokenizer = load_tokenizer(settings.model)
    rows = _fitting(rows, tokenizer, settings, report)
    if held_out:
        held_out = _fitting(held_out, tokenizer, settings, report)
    report(f"{len(rows)} examples, {settings.steps} steps of {settings.batch}")
    trainer = _trainer(settings, tokenizer, rows, held_out, report)
    return train(trainer, tokenizer, settings, folder, checkpoint, report, again=again)


def _fitting(rows: list[Row], tokenizer: Any, settings: SftSettings, report: Report) -> list[Row]:
    def tokens(row: Row) -> int:
        return chat_tokens(tokenizer, row["prompt"] + row["completion"], question=False)

    return short_enough(rows, tokens, settings.sequence_length, report)


def _trainer(
    settings: SftSettings, tokenizer: Any, rows: list[Row], held_out: list[Row], report: Report
) -> Any:
    from transformers import PrinterCallback
    from trl import SFTConfig, SFTTrainer

    from kernel_smith.training.watch import Watch

    arguments = common_arguments(settings, settings.batch)
    if held_out:
        arguments |= {"eval_strategy": "steps", "eval_steps": settings.save_every}
        arguments |= {"per_device_eval_batch_size": settings.micro_batch}
    trainer = SFTTrainer(
        model=load_model(settings),
        args=SFTConfig(completion_only_loss=True, max_length=settings.sequence_length, **arguments),
        train_dataset=_dataset(rows),
        eval_dataset=_dataset(held_out) if held_out else None,
        processing_class=tokenizer,
        peft_config=adapter_config(settings.lora) if settings.lora else None,
        callbacks=[Watch(Journal(settings.output), settings.output, report)],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _dataset(rows: list[Row]) -> Any:
    from datasets import Dataset

    return Dataset.from_list(
        [{name: row[name] for name in ("prompt", "completion")} for row in rows]
    )
