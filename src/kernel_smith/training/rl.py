"""Reinforcement learning: the model answers, the judge measures, better answers get likelier."""

from __future__ import annotations

from typing import Any

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import Limits, Options, Sampling
from kernel_smith.training.answers import question_of
from kernel_smith.training.config import RlSettings
from kernel_smith.training.environment import Environment
from kernel_smith.training.folder import Folder
from kernel_smith.training.journal import Journal
from kernel_smith.training.models import (
    adapter_config,
    load_model,
    load_tokenizer,
    need_libraries,
)
from kernel_smith.training.rows import data_files, fingerprint, need_rows
from kernel_smith.training.running import (
    Report,
    Row,
    Trained,
    chat_tokens,
    common_arguments,
    processes,
    short_enough,
    train,
)

_COLUMNS = ("id", "prompt", "task", "backend", "parent")


def train_rl(
    settings: RlSettings,
    engine: Evaluator,
    report: Report,
    *,
    options: Options | None = None,
    again: str = "the same call again",
) -> Trained:
    """Trains on rows of the format `trl-rl`, on from the last checkpoint if there is one.

    `options` are those of the evaluations that rewards come from; by default as settings say.
    """
    need_libraries()
    rows = need_rows(settings.data, "rl")
    for row in rows:
        question_of(row)  # better refused now than after an hour
    folder = Folder("rl", settings, fingerprint(data_files(settings.data)))
    checkpoint = folder.open()
    report("loading the model" if checkpoint is None else f"going on from {checkpoint}")
    tokenizer = load_tokenizer(settings.model)
    limit = settings.sequence_length - settings.max_new_tokens
    rows = short_enough(
        rows, lambda row: chat_tokens(tokenizer, row["prompt"], question=True), limit, report
    )
    _need_a_step(len(rows), settings.entries * processes())
    report(
        f"{len(rows)} questions, {settings.steps} steps of {settings.entries} questions with "
        f"{settings.samples} answers each"
    )
    journal = Journal(settings.output)
    environment = Environment(
        engine,
        settings.reward,
        journal,
        options=options or evaluation_options(settings),
        patience=60 * settings.patience_minutes,
        seed=settings.seed,
    )
    trainer = _trainer(settings, tokenizer, rows, environment, journal, report)
    return train(trainer, tokenizer, settings, folder, checkpoint, report, again=again)


def _need_a_step(questions: int, needed: int) -> None:
    """The trainer leaves out what is not enough for a step, and would be done at once."""
    if questions < needed:
        raise BadInput(
            f"{questions} questions are too few: a step takes {needed}",
            hint=f"lower `entries` to {questions} or less, or build more data",
        )


def evaluation_options(settings: RlSettings) -> Options:
    """Short measurements; kernels are listed only where a part of the reward asks for it."""
    reward = settings.reward
    seconds = settings.measure_seconds
    return Options(
        sampling=Sampling(target=0.02, unstable_above=0.1, min_rounds=6, max_seconds=seconds),
        limits=Limits(call_seconds=settings.call_seconds),
        profile=bool(reward.profiling) or reward.reject_lazy,
    )


def _trainer(
    settings: RlSettings,
    tokenizer: Any,
    rows: list[Row],
    environment: Environment,
    journal: Journal,
    report: Report,
) -> Any:
    from datasets import Dataset
    from transformers import PrinterCallback
    from trl import GRPOConfig

    from kernel_smith.training.judged_trainer import JudgedTrainer
    from kernel_smith.training.watch import Watch

    arguments = GRPOConfig(
        num_generations=settings.samples,
        max_completion_length=settings.max_new_tokens,
        temperature=settings.temperature,
        top_p=settings.top_p,
        beta=settings.beta,
        scale_rewards="group" if settings.advantage == "group" else "none",
        **common_arguments(settings, settings.entries * settings.samples),
    )
    trainer = JudgedTrainer(
        environment=environment,
        advantage=settings.advantage,
        generate_at_once=settings.generate_at_once,
        model=load_model(settings),
        args=arguments,
        train_dataset=Dataset.from_list([{name: row[name] for name in _COLUMNS} for row in rows]),
        processing_class=tokenizer,
        peft_config=adapter_config(settings.lora) if settings.lora else None,
        callbacks=[Watch(journal, settings.output, report)],
    )
    trainer.remove_callback(PrinterCallback)
    return trainer
