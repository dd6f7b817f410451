"""From stores to a data set: read, filter, make examples, split by task, write.

Examples wait in a file until all tasks are known, and then go where their task goes. Memory does
not grow with the number of steps, other than by a few bytes for each example.
"""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Literal

from pydantic import Field

import kernel_smith
from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import Example, Record, TrainingStep
from kernel_smith.trajectories.card import (
    CARD,
    NO_ANSWER,
    REPEATED,
    Card,
    FilterNote,
    FormatNote,
    Origin,
    Tally,
    write_card,
)
from kernel_smith.trajectories.examples import ExampleSettings, example_of
from kernel_smith.trajectories.filters import (
    DECIDED_BY_GAINS,
    KEPT,
    PRESETS,
    Filter,
    FilterSettings,
    chosen,
    sift,
)
from kernel_smith.trajectories.formats import FileKind, Format, Place, Split, find_format
from kernel_smith.trajectories.gain_filters import Faster
from kernel_smith.trajectories.remeasure import remeasure
from kernel_smith.trajectories.split import TaskKey, assign, references_of, tasks_in
from kernel_smith.trajectories.steps import read_steps
from kernel_smith.trajectories.writing import (
    RowWriter,
    complete_folder,
    need_parquet,
    open_rows,
)

_HELD_OUT = "held-out"
_DEFAULT_FORMATS = {"sft": ("trl-sft",), "rl": ("trl-rl",)}
_SPOOL = "examples.gz"
_REPORT_EVERY = 200
_SPLITS: tuple[Split, ...] = ("train", "validation")


class BuildSettings(Record):
    """All that decides what a data set holds."""

    stores: tuple[Path, ...] = Field(min_length=1)
    folder: Path
    purpose: Literal["sft", "rl"] = "sft"
    runs: tuple[str, ...] = Field(default=(), description="none: all of the stores")
    filters: tuple[str, ...] = Field(default=(), description="none: those of the purpose")
    thresholds: FilterSettings = FilterSettings()
    hold_out: tuple[str, ...] = Field(default=(), description="tasks, families or task files")
    example: ExampleSettings = ExampleSettings()
    formats: tuple[str, ...] = Field(default=(), description="none: TRL's of the purpose")
    files: FileKind | None = Field(default=None, description="null: as each format has it")
    validation: float = Field(default=0.1, ge=0, lt=1, description="share of the tasks")
    seed: int = Field(default=0, description="decides which tasks validate")


class BuildResult(Record):
    """What came of it."""

    folder: Path
    files: tuple[Path, ...]
    steps_read: int
    refused: dict[str, int] = Field(description="by filter")
    left_out: dict[str, int]
    rows: dict[str, int] = Field(description="of each split")
    tasks: dict[str, int]


class _Kept(Record):
    example: Example
    origin: Origin


def build(
    settings: BuildSettings, report: Callable[[str], None], engine: Evaluator | None = None
) -> BuildResult:
    """Write the data set. Nothing is left behind if this raises.

    With an `engine`, steps that may be good are measured again before they are judged by their
    gains; what was measured is kept beside the folder, for the next time.
    """
    formats = _formats(settings)
    filters = _filters(settings)
    with complete_folder(settings.folder, CARD) as folder:
        spool = folder / _SPOOL
        with gzip.open(spool, "wt", compresslevel=1, encoding="utf-8") as file:
            sifting = _Sifting(settings, filters, report, engine)
            for kept in sifting.kept():
                file.write(kept.model_dump_json() + "\n")
        if not sifting.tasks:
            raise _nothing(sifting)
        parts = assign(sifting.tasks, validation=settings.validation, seed=settings.seed)
        report(f"examples to write: {sifting.counts[KEPT] - sifting.left_out.total()}")
        with ExitStack() as stack:
            writing = _Writing(folder, formats, settings.files, stack)
            with gzip.open(spool, "rt", encoding="utf-8") as lines:
                writing.take(lines, parts)
        spool.unlink()
        card = _card(settings, sifting, writing, Counter(_by_name(parts).values()))
        write_card(card, folder)
    return BuildResult(
        folder=settings.folder,
        files=tuple(settings.folder / name for note in card.formats for name in note.files),
        steps_read=card.steps_read,
        refused={note.name: note.refused for note in card.filters},
        left_out=card.left_out,
        rows=card.rows,
        tasks=card.tasks,
    )


def _formats(settings: BuildSettings) -> list[Format]:
    names = settings.formats or _DEFAULT_FORMATS[settings.purpose]
    formats = [find_format(name) for name in dict.fromkeys(names)]
    if any((settings.files or each.file) == "parquet" for each in formats):
        need_parquet()  # better now than after an hour
    return formats


def _filters(settings: BuildSettings) -> list[Filter]:
    names = settings.filters or PRESETS[settings.purpose]
    held_out = settings.hold_out
    if not held_out:
        return chosen(names, settings.thresholds)
    found = {task.content_hash: task for task in tasks_in(settings.stores)}
    sources = references_of(held_out, found.values())
    update = {"held_out": held_out, "held_out_references": sources}
    return chosen((_HELD_OUT, *names), settings.thresholds.model_copy(update=update))


class _Sifting:
    """Reads steps, keeps the good ones, and counts what became of all."""

    def __init__(
        self,
        settings: BuildSettings,
        filters: list[Filter],
        report: Callable[[str], None],
        engine: Evaluator | None,
    ) -> None:
        self._settings = settings
        self._engine = engine
        self._report = report
        self._known: set[bytes] = set()
        self.filters = filters
        self.counts: Counter[str] = Counter()
        self.left_out: Counter[str] = Counter()
        self.tasks: set[TaskKey] = set()

    def kept(self) -> Iterator[_Kept]:
        steps = self._counted(read_steps(self._settings.stores, runs=self._settings.runs))
        if self._engine is not None:
            steps = self._measured_again(steps, self._engine)
        for step in sift(steps, self.filters, self.counts):
            identity = bytes.fromhex(step.identity)
            if identity in self._known:
                self.left_out[REPEATED] += 1
                continue
            self._known.add(identity)
            example = example_of(step, self._settings.example)
            if example is None:
                self.left_out[NO_ANSWER] += 1
                continue
            self.tasks.add(TaskKey.of(step.task))
            yield _Kept(example=example, origin=Origin.of(step))

    def _measured_again(
        self, steps: Iterator[TrainingStep], engine: Evaluator
    ) -> Iterator[TrainingStep]:
        """What a new measuring cannot save is refused before; a doubtful gain is measured."""
        folder = self._settings.folder
        before = [each for each in self.filters if each.name not in DECIDED_BY_GAINS]
        refused: Counter[str] = Counter()
        hopeful = filter(self._may_be_faster, sift(steps, before, refused))
        cache = folder.with_name(f"{folder.name}-measured.jsonl")
        for number, step in enumerate(remeasure(hopeful, engine, cache), 1):
            self._report(f"measured {number} steps again")
            yield step
        del refused[KEPT]
        self.counts.update(refused)

    def _may_be_faster(self, step: TrainingStep) -> bool:
        least = self._settings.thresholds.least_gain
        possible = step.first or step.gain is None or step.gain.overall.high > least
        if not possible:
            self.counts[Faster.name] += 1
        return possible

    def _counted(self, steps: Iterator[TrainingStep]) -> Iterator[TrainingStep]:
        for number, step in enumerate(steps, 1):
            if number % _REPORT_EVERY == 0:
                self._report(f"read {number} steps, kept {self.counts[KEPT]}")
            yield step


class _Writing:
    """The files of all formats, for each split that has rows."""

    def __init__(
        self, folder: Path, formats: list[Format], files: FileKind | None, stack: ExitStack
    ) -> None:
        self._folder = folder
        self._formats = formats
        self._files = files
        self._stack = stack
        self._writers: dict[tuple[str, Split], RowWriter] = {}
        self.tally = Tally()

    def take(self, lines: IO[str], parts: dict[TaskKey, Split]) -> None:
        for line in lines:
            kept = _Kept.model_validate_json(line)
            example = kept.example
            split = parts[TaskKey.of(example.task)]
            place = Place(split, self.tally.rows[split])
            for each in self._formats:
                self._writer(each, split).write(each.row(example, place))
            self.tally.add(example, kept.origin, split)

    def _writer(self, wanted: Format, split: Split) -> RowWriter:
        key = (wanted.name, split)
        if key not in self._writers:
            path = self._folder / self._path(wanted, split)
            path.parent.mkdir(exist_ok=True)
            writer = open_rows(path, self._files or wanted.file, wanted.columns)
            self._stack.callback(writer.close)
            self._writers[key] = writer
        return self._writers[key]

    def _path(self, wanted: Format, split: Split) -> str:
        return f"{wanted.name}/{split}.{self._files or wanted.file}"

    def notes(self) -> tuple[FormatNote, ...]:
        """The formats, each with its files."""
        there = [split for split in _SPLITS if self.tally.rows[split]]
        return tuple(
            FormatNote(
                name=each.name,
                explains=each.explains,
                files=tuple(self._path(each, split) for split in there),
            )
            for each in self._formats
        )


def _by_name(parts: dict[TaskKey, Split]) -> dict[str, Split]:
    return {task.name: split for task, split in parts.items()}


def _card(
    settings: BuildSettings, sifting: _Sifting, writing: _Writing, tasks: Counter[Split]
) -> Card:
    counts = sifting.counts
    tally = writing.tally
    return Card(
        name=settings.folder.resolve().name,
        purpose=settings.purpose,
        created_at=datetime.now(UTC),
        kernel_smith=kernel_smith.__version__,
        steps_read=counts.total(),
        filters=tuple(
            FilterNote(name=each.name, explains=each.explains, refused=counts[each.name])
            for each in sifting.filters
        ),
        left_out=dict(sifting.left_out),
        rows={split: tally.rows[split] for split in _SPLITS if tally.rows[split]},
        tasks={split: tasks[split] for split in _SPLITS if tasks[split]},
        counts=tally.counts(),
        formats=writing.notes(),
        provenance=tally.provenance(),
        settings=_noted(settings),
    )


def _noted(settings: BuildSettings) -> dict[str, object]:
    """The settings, without what the card says elsewhere."""
    own = {"purpose", "runs", "hold_out", "validation", "seed"}
    noted = settings.model_dump(mode="json", include=own)
    noted |= settings.example.model_dump(mode="json")
    noted |= settings.thresholds.model_dump(exclude={"held_out", "held_out_references"})
    return noted


def _nothing(sifting: _Sifting) -> BadInput:
    """Why no example is left, and what would help most."""
    counts = sifting.counts
    if not counts.total():
        return BadInput(
            "there is no evaluated step in these runs",
            hint="make some: kernel-smith optimize TASK",
        )
    refusals = Counter({name: n for name, n in counts.items() if name != KEPT})
    said = [f"{name} refused {count}" for name, count in refusals.most_common()]
    said += [f"{why} {count}" for why, count in sifting.left_out.items()]
    what = f"none of {counts.total()} steps is left: {'; '.join(said)}"
    most = max(refusals, key=lambda name: refusals[name], default="")
    return BadInput(what, hint=_remedy(most))


def _remedy(most: str) -> str:
    remedies = {
        "": "allow longer prompts, or ask for whole programs: --answer full",
        "faster": "lower --least-gain, or let runs go on: kernel-smith resume RUN",
        "measured-again": "measure the steps again: --measure-again",
        "best-step": "build for SFT, which takes every good step: --for sft",
        "timed": "these runs timed nothing; use runs on the hardware that the kernels are for",
        _HELD_OUT: "hold out less",
    }
    general = "`kernel-smith data filters` explains them; name those that you want with --filter"
    return remedies.get(most, general)
