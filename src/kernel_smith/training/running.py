"""What SFT and RL share: a trainer's arguments, going on where one stopped, and ending well."""

from __future__ import annotations

import contextlib
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_smith.errors import BadInput, Interrupted, MissingPrerequisite
from kernel_smith.training.config import TrainingSettings
from kernel_smith.training.curves import draw_curves
from kernel_smith.training.environment import EngineGone
from kernel_smith.training.folder import Folder
from kernel_smith.training.journal import Journal
from kernel_smith.training.model_card import write_model_card
from kernel_smith.training.models import save_model, uses_bf16

Report = Callable[[str], None]
Row = dict[str, Any]


@dataclass(frozen=True)
class Trained:
    """What a training leaves behind."""

    folder: Path
    final: Path
    steps: int
    metrics: dict[str, Any]


def common_arguments(settings: TrainingSettings, sequences: int) -> dict[str, Any]:
    """For whichever trainer; `sequences` is how many of them make a step."""
    import torch

    schedule = settings.schedule
    warm = schedule == "constant" and settings.warmup_steps > 0
    return {
        "output_dir": str(settings.output),
        "max_steps": settings.steps,
        "per_device_train_batch_size": settings.micro_batch,
        "gradient_accumulation_steps": sequences // settings.micro_batch,
        "learning_rate": settings.learning_rate,
        "lr_scheduler_type": "constant_with_warmup" if warm else schedule,
        "warmup_steps": settings.warmup_steps,
        "bf16": uses_bf16(settings),
        "gradient_checkpointing": settings.gradient_checkpointing,
        "dataloader_pin_memory": torch.cuda.is_available(),
        "seed": settings.seed,
        "save_strategy": "steps",
        "save_steps": settings.save_every,
        "save_total_limit": settings.keep_checkpoints,
        "logging_steps": 1,
        "report_to": "none",
        "disable_tqdm": True,
    }


def short_enough(
    rows: list[Row], tokens: Callable[[Row], int], limit: int, report: Report
) -> list[Row]:
    """Rows are left out, never cut: half an answer teaches nothing good."""
    kept = [row for row in rows if tokens(row) <= limit]
    if not kept:
        raise BadInput(
            f"all {len(rows)} rows are longer than {limit} tokens",
            hint="raise `sequence_length`, or build the data with shorter prompts",
        )
    if len(kept) < len(rows):
        report(f"left out {len(rows) - len(kept)} of {len(rows)} rows: over {limit} tokens")
    return kept


def chat_tokens(tokenizer: Any, messages: list[dict[str, str]], *, question: bool) -> int:
    ids = tokenizer.apply_chat_template(
        messages, tokenize=True, add_generation_prompt=question, return_dict=False
    )
    return len(ids)


def is_main_process() -> bool:
    """Of those that `accelerate launch` starts."""
    return os.environ.get("RANK", "0") == "0"


def processes() -> int:
    """That train together."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def train(
    trainer: Any,
    tokenizer: Any,
    settings: TrainingSettings,
    folder: Folder,
    checkpoint: Path | None,
    report: Report,
    *,
    again: str,
) -> Trained:
    """Runs a trainer from `checkpoint` to its end, and writes the final model."""
    from kernel_smith.training.sound_steps import SoundSteps, avoid_unsound_attention
    from kernel_smith.training.stopping import Stopping

    avoid_unsound_attention()
    main, stopping = is_main_process(), Stopping(report, alone=processes() == 1)
    trainer.create_model_card = lambda **_: None  # ours comes with the final model
    trainer.add_callback(stopping)
    trainer.add_callback(SoundSteps(report))
    journal = Journal(settings.output)
    if main:
        folder.note("running")
        journal.forget_metrics_after(_step(checkpoint))
    with _quiet(), _endings(trainer, folder, journal, again):
        with stopping:
            trainer.train(resume_from_checkpoint=str(checkpoint) if checkpoint else None)
        if stopping.asked and trainer.state.global_step < settings.steps:
            raise KeyboardInterrupt
        if main or trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
            save_model(trainer, tokenizer, folder.final, merge=settings.merge)
    metrics = journal.read_metrics()
    last = {name: value for line in metrics for name, value in line.items()}
    if main:
        info = folder.note("done", steps=trainer.state.global_step)
        folder.copy_info_to_final()
        write_model_card(folder.final, info, settings.data, last)
    return Trained(settings.output, folder.final, trainer.state.global_step, last)


@contextlib.contextmanager
def _endings(trainer: Any, folder: Folder, journal: Journal, again: str) -> Iterator[None]:
    """Turns what may end a training early into what to do about it; draws the curves either way."""
    import torch

    ended_early = True
    try:
        yield
        ended_early = False
    except EngineGone as error:
        if trainer.state.global_step and trainer.accelerator.num_processes == 1:
            # Rewards are asked for between two steps, so the weights are those of a whole one.
            trainer._save_checkpoint(trainer.model, trial=None)
        hint = f"{error.hint}; then go on{_where(folder)}: {again}"
        raise MissingPrerequisite(error.what, hint=hint) from None
    except KeyboardInterrupt:
        raise Interrupted("interrupted", hint=f"go on{_where(folder)}: {again}") from None
    except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        raise MissingPrerequisite(
            f"out of memory{_where(folder, ', the last checkpoint is ')}",
            hint="lower `micro_batch`, then `sequence_length` or `generate_at_once`; train an "
            "adapter instead of all weights; these begin a new --output",
        ) from None
    finally:
        if is_main_process():
            if ended_early:
                folder.note("stopped", steps=trainer.state.global_step)
            draw_curves(journal.read_metrics(), folder.path / "curves.png")


def _where(folder: Folder, words: str = " from ") -> str:
    checkpoint = folder.last_checkpoint()
    return f"{words}{checkpoint}" if checkpoint else ""


def _is_out_of_memory(error: BaseException) -> bool:
    import torch

    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return "DefaultCPUAllocator" in str(error) or "out of memory" in str(error).lower()


def _step(checkpoint: Path | None) -> int:
    return int(checkpoint.name.rpartition("-")[2]) if checkpoint else 0


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """The trainers tell at length, for every answer, that its reward is not known."""
    logger = logging.getLogger("trl.trainer.grpo_trainer")
    before = logger.level
    logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        logger.setLevel(before)
