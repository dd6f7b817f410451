"""The rows that the training experiment learns from, made of the steps of its runs.

Filters are tried from the strictest on, until one leaves enough rows. A question of RL need not
have a good answer yet.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, NamedTuple

from training_figures import read_lines
from training_runs import say

from kernel_smith.errors import BadInput
from kernel_smith.proposers.model.edits import has_edits
from kernel_smith.trajectories.build import BuildSettings, build
from kernel_smith.trajectories.examples import ExampleSettings
from kernel_smith.trajectories.filter_base import FilterSettings
from kernel_smith.trajectories.filters import PRESETS

Purpose = Literal["sft", "rl"]

# A row is learnt from several times, a question asked once or twice.
_ENOUGH_ROWS: dict[Purpose, int] = {"sft": 300, "rl": 150}
_ANY_HONEST = ("held-out", "correct", "timed", "honest-lineage", "new", "balanced")
_NOT_STRICT = (*_ANY_HONEST, "faster", "measured-again")
LADDERS: dict[Purpose, tuple[tuple[str, ...], ...]] = {
    "sft": (PRESETS["sft"], _NOT_STRICT),
    "rl": (PRESETS["rl"], _NOT_STRICT, _ANY_HONEST),
}


class Wanted(NamedTuple):
    hold_out: tuple[str, ...]
    least_gain: float  # of the steps that SFT learns from


def rows_in(folder: Path, purpose: Purpose) -> Path:
    return folder / f"rows-{purpose}"


def make_rows(folder: Path, purpose: Purpose, wanted: Wanted) -> dict[str, Any]:
    """From the stores folder/steps*.sqlite; returns what was kept, and why the rest was not."""
    tried: list[str] = []
    for filters in LADDERS[purpose]:
        settings = BuildSettings(
            stores=tuple(sorted(folder.glob("steps*.sqlite"))),
            folder=folder / f"data-{purpose}",
            purpose=purpose,
            filters=filters,
            thresholds=FilterSettings(least_gain=wanted.least_gain if purpose == "sft" else 1.0),
            hold_out=wanted.hold_out,
            example=ExampleSettings(prompt="brief", answer="edits"),
            validation=0.1 if purpose == "sft" else 0.0,
        )
        try:
            built = build(settings, lambda _: None)
        except BadInput as error:
            tried.append(error.what)
            continue
        rows = _keep_changes(built.files, rows_in(folder, purpose))
        note = f"{', '.join(filters)}: {rows} rows of {built.steps_read} steps"
        say(f"data: {purpose}: {note}")
        if rows.get("train", 0) >= _ENOUGH_ROWS[purpose]:
            break
        tried.append(note)
    if not rows.get("train"):
        raise BadInput(f"no rows for {purpose}: {tried}", hint="raise --evaluations or --tasks")
    left_out = {"refused": built.refused, "tried_before": tried}
    return {"filters": filters, "rows": rows, "steps": built.steps_read, **left_out}


def _keep_changes(files: Sequence[Path], folder: Path) -> dict[str, int]:
    """The rows that ask for edits of a parent: here nobody is asked for a first program."""
    folder.mkdir(exist_ok=True)
    counts: dict[str, int] = {}
    for file in files:
        rows = [row for row in read_lines(file) if has_edits(row["prompt"][-1]["content"])]
        _write(folder / file.name, rows)
        if rows:
            counts[file.stem] = len(rows)
        else:
            (folder / file.name).unlink()
    return counts


def leave_out_long_answers(folder: Path, tokenizer: Any, most: int) -> None:
    """Whoever learns from answers that it cannot finish learns not to finish."""
    for file in sorted(rows_in(folder, "sft").glob("*.jsonl")):
        rows = read_lines(file)
        said = [row["completion"][-1]["content"] for row in rows]
        lengths = [1 + len(tokenizer(text)["input_ids"]) for text in said]  # 1: the end of the text
        kept = [row for row, length in zip(rows, lengths, strict=True) if length <= most]
        say(f"sft: {file.stem}: {len(kept)} of {len(rows)} answers have at most {most} tokens")
        _write(file, kept)


def longest_row(folder: Path, purpose: Purpose, tokenizer: Any) -> int:
    """Tokens; a small number of them decides how much memory is needed."""
    from kernel_smith.training.running import chat_tokens

    question = purpose == "rl"
    lengths = [
        chat_tokens(tokenizer, row["prompt"] + row.get("completion", []), question=question)
        for row in read_lines(rows_in(folder, purpose) / "train.jsonl")
    ]
    say(f"{purpose}: rows of {min(lengths)} to {max(lengths)} tokens")
    return max(lengths)


def _write(file: Path, rows: list[dict[str, Any]]) -> None:
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
