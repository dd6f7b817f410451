"""The card of a data set: what is in it, where it comes from, and what was left out.

`Tally` collects it while rows are written; `README.md` is for people and for those who host data
sets, `card.json` for programs.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any, Self

from pydantic import Field

from kernel_smith.records import Example, Record, TrainingStep, VersionedRecord

CARD = "card.json"
README = "README.md"

# Why a step is in no file although all filters kept it.
NO_ANSWER = "no-answer"
REPEATED = "repeated"
LEFT_OUT = {
    NO_ANSWER: "whose prompt is too long, or whose child no answer of the form gives",
    REPEATED: "that came before",
}

_SHOWN = 20

_LICENCE = """\
The rows hold references, programs and prompts from the runs above. Whoever wrote the references
decides what may be done with them, and the terms of a language model may say what may be done with
its answers. State the licence here before you pass the data on."""


class Origin(Record):
    """Where a step was made and measured."""

    store: str
    run: str
    machine: str
    versions: str
    at: datetime

    @classmethod
    def of(cls, step: TrainingStep) -> Self:
        evaluation = step.child.evaluation
        made = evaluation.environment
        device = evaluation.device
        return cls(
            store=step.store,
            run=step.run,
            machine=device.name if device is not None else f"{made.processor} ({made.machine})",
            versions=f"kernel-smith {made.kernel_smith}, Python {made.python}, torch {made.torch}, "
            f"{made.compiler}",
            at=evaluation.created_at,
        )


class FilterNote(Record):
    name: str
    explains: str
    refused: int


class FormatNote(Record):
    name: str
    explains: str
    files: tuple[str, ...] = Field(description="below the folder of the data set")


class Provenance(Record):
    stores: tuple[str, ...]
    runs: tuple[str, ...]
    machines: dict[str, int] = Field(description="rows of each")
    versions: dict[str, int]
    first: datetime = Field(description="when the oldest row was measured")
    last: datetime


class Card(VersionedRecord):
    """A data set in numbers."""

    name: str
    purpose: str
    created_at: datetime
    kernel_smith: str
    steps_read: int
    filters: tuple[FilterNote, ...]
    left_out: dict[str, int] = Field(description="steps that passed the filters, by why not")
    rows: dict[str, int] = Field(description="of each split")
    tasks: dict[str, int] = Field(description="of each split, and those that were held out")
    counts: dict[str, dict[str, int]] = Field(description="rows by family, proposer, ...")
    formats: tuple[FormatNote, ...]
    provenance: Provenance
    settings: dict[str, Any]


class Tally:
    """Counts rows."""

    def __init__(self) -> None:
        self.rows: Counter[str] = Counter()
        self._counts: dict[str, Counter[str]] = {}
        self._stores: dict[str, None] = {}
        self._runs: dict[str, None] = {}
        self._machines: Counter[str] = Counter()
        self._versions: Counter[str] = Counter()
        self._first: datetime | None = None
        self._last: datetime | None = None

    def add(self, example: Example, origin: Origin, split: str) -> None:
        self.rows[split] += 1
        kinds = {
            "kind": example.kind,
            "family": example.task.family,
            "proposer": example.proposer,
            "backend": example.backend,
            "answer": example.mode,
        }
        for kind, value in kinds.items():
            self._counts.setdefault(kind, Counter())[value] += 1
        self._stores[origin.store] = self._runs[origin.run] = None
        self._machines[origin.machine] += 1
        self._versions[origin.versions] += 1
        self._first = min(self._first or origin.at, origin.at)
        self._last = max(self._last or origin.at, origin.at)

    def counts(self) -> dict[str, dict[str, int]]:
        return {kind: dict(counter.most_common()) for kind, counter in self._counts.items()}

    def provenance(self) -> Provenance:
        """Of at least one row."""
        assert self._first is not None and self._last is not None
        return Provenance(
            stores=tuple(self._stores),
            runs=tuple(self._runs),
            machines=dict(self._machines.most_common()),
            versions=dict(self._versions.most_common()),
            first=self._first,
            last=self._last,
        )


def write_card(card: Card, folder: Path) -> None:
    (folder / CARD).write_text(card.model_dump_json(indent=2) + "\n", encoding="utf-8")
    (folder / README).write_text(readme(card), encoding="utf-8")


def readme(card: Card) -> str:
    parts = [_front_matter(card), _summary(card), _files(card), _counts(card)]
    parts += [_filters(card), _provenance(card), _settings(card), f"## Licence\n\n{_LICENCE}"]
    return "\n\n".join(parts) + "\n"


def _front_matter(card: Card) -> str:
    """What hosts of data sets read: which files belong to which split of which format.

    They take files of one kind alone, so formats in another kind than the first are not named.
    """
    lines = ["---", "license: other", "tags:", "- kernels", f"- {card.purpose}", "configs:"]
    kind = Path(card.formats[0].files[0]).suffix
    for note in card.formats:
        files = [Path(name) for name in note.files if Path(name).suffix == kind]
        lines += [f"- config_name: {note.name}", "  data_files:"] if files else []
        for file in files:
            lines += [f"  - split: {file.stem}", f"    path: {file}"]
    return "\n".join([*lines, "---"])


def _summary(card: Card) -> str:
    rows = ", ".join(f"{count} {split}" for split, count in card.rows.items())
    tasks = ", ".join(f"{count} {part}" for part, count in card.tasks.items())
    return (
        f"# {card.name}\n\n"
        f"Steps of kernel optimization for {card.purpose.upper()}: from a program to a faster one "
        "that is as correct, each measured by an independent judge.\n\n"
        f"- Rows: {rows}\n- Tasks: {tasks}\n"
        f"- Made by kernel-smith {card.kernel_smith} on {card.created_at:%F}"
    )


def _files(card: Card) -> str:
    rows = [
        (note.name, ", ".join(f"`{f}`" for f in note.files), note.explains) for note in card.formats
    ]
    return "## Files\n\n" + _table(("format", "files", "what for"), rows)


def _counts(card: Card) -> str:
    rows = [
        (kind, value, str(count))
        for kind, values in card.counts.items()
        for value, count in values.items()
    ]
    return "## Rows by kind\n\n" + _table(("what", "value", "rows"), rows)


def _filters(card: Card) -> str:
    rows = [(note.name, note.explains, str(note.refused)) for note in card.filters]
    left = "\n".join(f"- {count} {LEFT_OUT[why]}" for why, count in card.left_out.items())
    text = (
        f"## Filters\n\n{card.steps_read} steps were read. Each filter sees what those before it "
        f"kept.\n\n{_table(('filter', 'what it asks for', 'refused'), rows)}"
    )
    return f"{text}\n\nOf those that were kept, left out:\n\n{left}" if left else text


def _provenance(card: Card) -> str:
    origin = card.provenance
    return "\n".join(
        (
            "## Provenance",
            "",
            f"- Stores: {_some(origin.stores)}",
            f"- Runs: {_some(origin.runs)}",
            f"- Hardware: {_some(_with_counts(origin.machines))}",
            f"- Versions: {_some(_with_counts(origin.versions), '; ')}",
            f"- Measured: {origin.first:%F} to {origin.last:%F}",
        )
    )


def _settings(card: Card) -> str:
    rows = [(name, f"`{value}`") for name, value in card.settings.items()]
    return "## Settings\n\n" + _table(("setting", "value"), rows)


def _with_counts(counts: Mapping[str, int]) -> list[str]:
    return [f"{name} ({count} rows)" for name, count in counts.items()]


def _some(names: Iterable[str], separator: str = ", ") -> str:
    known = list(names)
    more = f"{separator}and {len(known) - _SHOWN} more (`{CARD}`)" if len(known) > _SHOWN else ""
    return separator.join(known[:_SHOWN]) + more


def _table(head: tuple[str, ...], rows: Iterable[tuple[str, ...]]) -> str:
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in line) + " |"
        for line in lines
    )
