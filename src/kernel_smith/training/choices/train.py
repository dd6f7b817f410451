"""Training a language model to choose edits: SFT towards certain gains, then RL from there.

What counts in the end is the checkpoint that was best on families that it did not learn from.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from kernel_smith.errors import BadInput
from kernel_smith.training.choices.families import deal
from kernel_smith.training.choices.questions import Question, read_questions
from kernel_smith.training.choices.reading import Letters
from kernel_smith.training.config import ChooserSettings
from kernel_smith.training.folder import Folder
from kernel_smith.training.journal import Journal
from kernel_smith.training.models import (
    TO_CHOOSE,
    adapter_config,
    is_adapter,
    load_base,
    load_tokenizer,
    need_libraries,
    uses_bf16,
    with_adapter,
)
from kernel_smith.training.rows import fingerprint
from kernel_smith.training.running import (
    Report,
    Row,
    Trained,
    common_arguments,
    short_enough,
    train,
)


def train_chooser(
    settings: ChooserSettings, report: Report, *, again: str = "the same call again"
) -> Trained:
    """Train on a file of questions, on from the last checkpoint if there is one."""
    need_libraries(TO_CHOOSE)
    learnt, held = by_family(read_questions(settings.data), settings)
    folder = Folder("chooser", settings, fingerprint([settings.data]))
    checkpoint = folder.open()
    report("loading the model" if checkpoint is None else f"going on from {checkpoint}")
    letters = Letters(load_tokenizer(settings.model))
    rows, others = (_rows(part, letters, settings, report) for part in (learnt, held))
    report(f"{len(rows)} questions, {len(others)} of other families to validate on")
    trainer = _trainer(settings, letters, rows, others, report)
    return train(trainer, letters.tokenizer, settings, folder, checkpoint, report, again=again)


def by_family(
    questions: Sequence[Question], settings: ChooserSettings
) -> tuple[list[Question], list[Question]]:
    """Return what is learnt from and what validates, which are of different families.

    SFT has nothing to learn where nothing gained. Which of a program's orders validates does not
    matter, so one of them is enough.
    """
    useful = [each for each in questions if each.gains or settings.objective == "rl"]
    families = set(deal({each.family for each in useful}, settings.folds, settings.seed)[0])
    learnt = [each for each in useful if each.family not in families]
    held = {
        (each.machine, each.task, each.program): each for each in useful if each.family in families
    }
    if not learnt or not held:
        raise BadInput(
            f"{settings.data}: {len(useful)} questions of {len(families)} families teach nothing, "
            "expected some of two families at least",
            hint="judge more programs: benchmarks/choices_table.py TABLE.jsonl",
        )
    return learnt, list(held.values())


def _rows(
    questions: Sequence[Question], letters: Letters, settings: ChooserSettings, report: Report
) -> list[Row]:
    from kernel_smith.training.choices.trainer import row_of

    rows = [row_of(each, letters.encoded(each.prompt)) for each in questions]
    return short_enough(rows, lambda row: len(row["tokens"]), settings.sequence_length, report)


def _trainer(
    settings: ChooserSettings, letters: Letters, rows: list[Row], others: list[Row], report: Report
) -> Any:
    from transformers import PrinterCallback, TrainingArguments

    from kernel_smith.training.choices.trainer import ChooserTrainer
    from kernel_smith.training.watch import Watch

    arguments = common_arguments(settings, settings.batch) | {
        "remove_unused_columns": False,
        "label_names": ["rewards"],
        "per_device_eval_batch_size": settings.micro_batch,
        "eval_strategy": "steps",
        "eval_steps": settings.save_every,
        "load_best_model_at_end": True,
        "metric_for_best_model": "eval_loss",
        "greater_is_better": False,
    }
    trainer = ChooserTrainer(
        settings,
        letters,
        model=_model(settings),
        args=TrainingArguments(**arguments),
        train_dataset=rows,
        eval_dataset=others,
        callbacks=[Watch(Journal(settings.output), settings.output, report)],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer


def _model(settings: ChooserSettings) -> Any:
    """An adapter is gone on with; a model gets a new one."""
    import torch

    low = uses_bf16(settings) and (bool(settings.lora) or is_adapter(settings.model))
    model = load_base(settings.model, torch.bfloat16 if low else torch.float32)
    if is_adapter(settings.model):
        model = with_adapter(model, settings.model, trainable=True)
    elif settings.lora:
        from peft import get_peft_model

        torch.manual_seed(settings.seed)  # a new adapter begins at random
        config = adapter_config(settings.lora)
        config.base_model_name_or_path = str(settings.model.resolve())  # also of a GGUF file
        model = get_peft_model(model, config)
    if settings.gradient_checkpointing:
        model.enable_input_require_grads()
    return model
