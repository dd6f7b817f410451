"""Train a language model to choose edits, without each part of the families once, and ask it there.

    python benchmarks/choices_model.py WORK --prepare [--table TABLE.jsonl]   # questions, on a CPU
    python benchmarks/choices_model.py WORK --model MODEL                     # trains; a GPU helps
    python benchmarks/choices.py [--table TABLE.jsonl] --odds WORK/odds.jsonl # beside other arms

The first command asks about all judged options: recorded ones (`results/training/steps.sqlite`) and
those of tables. The second trains, for each of six parts of the families, SFT on the others and RL
from there, and writes what the model as it is, after SFT and after RL says of the part's programs.
It needs no more than the folder WORK, torch, transformers and peft. Run it again to continue, also
after a `kill -9`: trainings go on from their last checkpoints, and what is done is not done twice.
The third compares, by the same runs and the same bootstrap as for all other policies.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from common import progress

from kernel_smith.training.choices.families import deal
from kernel_smith.training.choices.questions import (
    Question,
    questions_of,
    read_questions,
    write_questions,
)

FOLDS, FOLD_SEED = 6, 26
ORDERS = 4
AT_ONCE = 8  # questions that are asked together
QUESTIONS, ODDS = "questions.jsonl", "odds.jsonl"
BASE, SFT, RL = "model as it is", "model SFT", "model RL"


def prepare(work: Path, tables: Sequence[Path]) -> None:
    from moves import STORE

    from kernel_smith.training.choices.recorded import recorded_states
    from kernel_smith.training.choices.table import Table

    states = recorded_states([STORE], lambda steps: progress(f"{steps} steps"))
    states += [state for path in tables for state in Table(path).states.values()]
    asked = questions_of(states, ORDERS, lambda done: progress(f"{done} of {len(states)} programs"))
    count = write_questions(asked, work / QUESTIONS)
    print(f"\n{count} questions are in {work / QUESTIONS}")


def odds_at(folder: Path, asked: Sequence[Question]) -> list[dict[str, float]]:
    """What a model says of what comes of each judged letter, up to a factor."""
    from kernel_smith.proposers.chooser.options import LABELS
    from kernel_smith.training.choices.reading import Reader

    reader = Reader(folder)
    order = sorted(range(len(asked)), key=lambda index: len(asked[index].prompt))
    found: dict[int, dict[str, float]] = {}
    for first in range(0, len(order), AT_ONCE):
        batch = order[first : first + AT_ONCE]
        said = reader.odds([asked[index].prompt for index in batch], [len(LABELS)] * len(batch))
        for index, odds in zip(batch, said, strict=True):
            by_label = dict(zip(LABELS, odds, strict=True))
            children = asked[index].children
            found[index] = {child: by_label[label] for label, child in children.items()}
        progress(f"{len(found)} of {len(asked)} programs asked about")
    return [found[index] for index in range(len(asked))]


def note(work: Path, arm: str, asked: Sequence[Question], folder: Path) -> None:
    """Append what an arm says of programs, all of it or nothing."""
    said = zip(asked, odds_at(folder, asked), strict=True)
    rows = [
        {"arm": arm, "machine": one.machine, "program": one.program, "task": one.task, "odds": odds}
        for one, odds in said
    ]
    with (work / ODDS).open("a") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))


def noted(work: Path) -> set[tuple[str, str, str]]:
    path = work / ODDS
    if not path.exists():
        return set()
    whole = [line for line in path.read_text().splitlines() if line.endswith("}")]
    path.write_text("".join(f"{line}\n" for line in whole))  # a crash may cut the last
    rows = (json.loads(line) for line in whole)
    return {(row["arm"], row["machine"], row["program"]) for row in rows}


def once(questions: Iterable[Question]) -> list[Question]:
    """The first order of each program."""
    first: dict[tuple[str, str, str], Question] = {}
    for each in questions:
        first.setdefault((each.machine, each.task, each.program), each)
    return list(first.values())


def train(
    folder: Path, data: Path, model: Path, objective: str, chosen: argparse.Namespace
) -> Path:
    """The adapter of a training, which is finished before."""
    from kernel_smith.training.choices.train import train_chooser
    from kernel_smith.training.config import ChooserSettings, Lora
    from kernel_smith.training.rows import fingerprint

    adapter, info = folder / "final" / "adapter", folder / "training.json"
    if info.exists():
        known = json.loads(info.read_text())
        if known["state"] == "done" and known["data_sha256"] == fingerprint([data]):
            return adapter
    settings = ChooserSettings(
        data=data,
        model=model,
        output=folder,
        objective=objective,
        steps=chosen.sft_steps if objective == "sft" else chosen.rl_steps,
        learning_rate=chosen.learning_rate,
        batch=chosen.batch,
        micro_batch=chosen.micro_batch,
        sequence_length=chosen.sequence_length,
        save_every=chosen.save_every,
        lora=Lora(rank=chosen.rank),
    )
    train_chooser(settings, lambda what: print(f"{folder.name}: {what}", flush=True))
    return adapter


def one_fold(
    number: int, families: list[str], questions: list[Question], chosen: argparse.Namespace
) -> None:
    known = [each for each in questions if each.family not in families]
    tested = once(each for each in questions if each.family in families)
    data = chosen.work / f"fold-{number}.jsonl"
    write_questions(known, data)
    model, done = chosen.model.resolve(), noted(chosen.work)
    for arm, objective in ((SFT, "sft"), (RL, "rl")):
        folder = chosen.work / f"fold-{number}-{objective}"
        model = train(folder.resolve(), data, model, objective, chosen)
        left = [each for each in tested if (arm, each.machine, each.program) not in done]
        if left:
            note(chosen.work, arm, left, model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("work", type=Path, help="a folder for questions, trainings and odds")
    parser.add_argument("--prepare", action="store_true", help="write the questions, and no more")
    parser.add_argument("--table", type=Path, action="append", default=[])
    parser.add_argument("--model", type=Path, help="a folder, or a GGUF file")
    parser.add_argument("--fold", type=int, action="append", help="only this one, from 1 on")
    parser.add_argument("--sft-steps", type=int, default=60)
    parser.add_argument("--rl-steps", type=int, default=100)
    parser.add_argument("--learning-rate", type=float, default=1e-4)
    parser.add_argument("--batch", type=int, default=16)
    parser.add_argument("--micro-batch", type=int, default=8)
    parser.add_argument("--sequence-length", type=int, default=8192)
    parser.add_argument("--save-every", type=int, default=10)
    parser.add_argument("--rank", type=int, default=16)
    chosen = parser.parse_args()
    chosen.work.mkdir(parents=True, exist_ok=True)
    if chosen.prepare:
        prepare(chosen.work, chosen.table)
        return
    if chosen.model is None:
        parser.error("--model is missing: what is to be trained?")
    questions = read_questions(chosen.work / QUESTIONS)
    done = noted(chosen.work)
    left = [each for each in once(questions) if (BASE, each.machine, each.program) not in done]
    if left:
        note(chosen.work, BASE, left, chosen.model)
    for number, families in enumerate(
        deal({each.family for each in questions}, FOLDS, FOLD_SEED), 1
    ):
        if families and (not chosen.fold or number in chosen.fold):
            one_fold(number, families, questions, chosen)
    odds = chosen.work / ODDS
    print(f"\nodds are in {odds}\nnext: python benchmarks/choices.py --odds {odds}")


if __name__ == "__main__":
    main()
