"""The JSON schemas of the records, as files beside the code.

Run as `python -m kernel_smith.records.schema_files` to write them, with `--check` to see whether
they are up to date. Records that people write are described as they are read, so that fields with
a default may be left out; results are described as they are written, with every field.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Literal, NamedTuple

from kernel_smith.records.base import Record
from kernel_smith.records.bench import BenchResult
from kernel_smith.records.candidate import Candidate
from kernel_smith.records.compile_report import CompileReport
from kernel_smith.records.device import Ceilings
from kernel_smith.records.evaluation import Evaluation
from kernel_smith.records.options import Options
from kernel_smith.records.task import Task

FOLDER = Path(__file__).parent / "schemas"
COMMAND = "python -m kernel_smith.records.schema_files"

_DRAFT = "https://json-schema.org/draft/2020-12/schema"


class Described(NamedTuple):
    """A record that is stored or sent on its own, and the side from which it is described."""

    record: type[Record]
    mode: Literal["validation", "serialization"]


DESCRIBED = {
    "bench_result.json": Described(BenchResult, "serialization"),
    "candidate.json": Described(Candidate, "validation"),
    "ceilings.json": Described(Ceilings, "serialization"),
    "compile_report.json": Described(CompileReport, "serialization"),
    "evaluation.json": Described(Evaluation, "serialization"),
    "options.json": Described(Options, "validation"),
    "task.json": Described(Task, "validation"),
}


def schema_texts() -> dict[str, str]:
    """File name -> content, in the one spelling that is checked in."""
    texts = {}
    for name, (record, mode) in DESCRIBED.items():
        schema = {"$schema": _DRAFT, **record.model_json_schema(mode=mode)}
        texts[name] = json.dumps(schema, indent=2, sort_keys=True) + "\n"
    return texts


def write(folder: Path = FOLDER) -> None:
    """Write every schema, and remove files that no record stands behind any more."""
    folder.mkdir(exist_ok=True)
    texts = schema_texts()
    for path in folder.glob("*.json"):
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        (folder / name).write_text(text, encoding="utf-8")


def stale(folder: Path = FOLDER) -> list[Path]:
    """Files that are missing, outdated, or without a record."""
    texts = schema_texts()
    paths = {path for path in folder.glob("*.json") if path.name not in texts}
    for name, text in texts.items():
        path = folder / name
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            paths.add(path)
    return sorted(paths)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description="Write the records' JSON schemas.")
    parser.add_argument("--check", action="store_true", help="only say which files are stale")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where the files lie")
    chosen = parser.parse_args(arguments)
    if not chosen.check:
        write(chosen.folder)
        return 0
    outdated = stale(chosen.folder)
    if not outdated:
        return 0
    names = ", ".join(str(path) for path in outdated)
    print(f"error: schemas that do not match the records: {names}", file=sys.stderr)
    print(f"hint: run `{COMMAND}`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
