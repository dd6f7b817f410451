"""Do programs that look for holes in the judge get a reward?

Judges every program of a folder, with the static screen and without, several times each. A program
is a file with `class ModelNew`, which names its task as `TASK_FILE = "..."` or in a line
`# task: ...`: a built-in one, or a file beside it. Names of cheats begin with `e` or `x`; all
others are honest.

A cheat is rewarded where it is accepted and surely faster than each honest program of its task was,
or, where there is none, not surely slower than the reference. `--busy` has so many other programs
keep a core busy meanwhile. Programs whose names end in `_twin` are judged in order of their names,
as in a run, where what compiles to the same is not timed again.

    python benchmarks/holes.py FOLDER [--times 3] [--busy 2] [--json results.jsonl]
    python benchmarks/holes.py --table results.jsonl

The file is added to, and exit code 1 says that a cheat was rewarded or an honest program refused.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from clock_accuracy import neighbours
from common import describe_machine, progress

from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import Candidate, Evaluation, Options, Stage, Task
from kernel_smith.tasks import find_task

CHEATS = ("e", "x")
TASK_LINE = re.compile(r'^(?:TASK_FILE = "|# task: )([^"\n]+)', re.MULTILINE)
UNDECIDED = {Stage.UNSTABLE.value}
LONGEST_MESSAGE = 300


class Program(NamedTuple):
    name: str
    source: str
    task: Task

    @property
    def is_twin(self) -> bool:
        return self.name.endswith("_twin")


def programs(folder: Path, only: list[str]) -> Iterator[Program]:
    for path in sorted(folder.glob("*.py")):
        source = path.read_text()
        if "class ModelNew" not in source or (only and path.stem.split("_")[0] not in only):
            continue
        named = TASK_LINE.search(source)
        if named is None:
            raise SystemExit(f'{path}: names no task, by TASK_FILE = "..." or # task: ...')
        beside = folder / named[1]
        yield Program(path.stem, source, find_task(str(beside) if beside.exists() else named[1]))


def judge(engine: LocalEngine, program: Program, mark: str, *, screen: bool) -> dict[str, Any]:
    """One evaluation, in words and figures."""
    text = f"{program.source}\n# {mark}\n"
    backend = "triton" if "import triton" in text else "cpp"
    candidate = Candidate(source=text, backend=backend, name=f"{program.name}.py")
    options = Options(screen=screen, time_twins=not program.is_twin)
    return described(engine.evaluate(program.task, candidate, options))


def described(evaluation: Evaluation) -> dict[str, Any]:
    timing = evaluation.timing
    return {
        "stage": evaluation.stage.value,
        "end": "accepted" if evaluation.reason is None else evaluation.reason.value,
        "speedup": None if timing is None else timing.speedup.model_dump(),
        "message": (evaluation.message or "")[:LONGEST_MESSAGE],
        "notes": list(evaluation.notes),
        "seconds": round(sum(evaluation.seconds.values()), 1),
        "load": round(os.getloadavg()[0], 1),  # of the last minute, all programs together
    }


def passes(arguments: argparse.Namespace) -> Iterator[dict[str, Any]]:
    """Judge every program once before any is judged again."""
    found = list(programs(arguments.folder, arguments.only))
    for number in range(arguments.times):
        for screen in arguments.screen:
            with LocalEngine() as engine:
                for program in found:
                    progress(f"{number + 1} of {arguments.times}, {program.name}")
                    row = judge(engine, program, f"{screen} {number}", screen=screen)
                    about = {"task": program.task.name, "screen": screen, "busy": arguments.busy}
                    yield {"name": program.name, **about, **row}


def is_cheat(name: str) -> bool:
    return name.startswith(CHEATS)


def is_rewarded(row: dict[str, Any], honest: list[dict[str, Any]]) -> bool:
    """`honest`: what was found of honest programs of the same task beside as many busy programs."""
    if row["end"] != "accepted" or row["speedup"] is None:
        return False
    theirs = [other["speedup"]["high"] for other in honest if other["speedup"]]
    if theirs:
        return row["speedup"]["low"] > max(theirs)
    return row["speedup"]["high"] >= 1


def group(rows: list[dict[str, Any]]) -> dict[tuple[Any, ...], list[dict[str, Any]]]:
    found = defaultdict(list)
    for row in rows:
        found[row["name"], row["busy"], row["screen"]].append(row)
    return dict(sorted(found.items()))


def table(rows: list[dict[str, Any]]) -> tuple[str, int]:
    """The table, and how many evaluations ended as they must not."""
    lines = [
        "| program | busy | screen | ends | times eager | honest ones | rewarded, or refused |",
        "|---|---|---|---|---|---|---|",
    ]
    wrong = 0
    for (name, busy, screen), some in group(rows).items():
        task = some[0]["task"]
        honest = [
            row
            for row in rows
            if (row["task"], row["busy"]) == (task, busy) and not is_cheat(row["name"])
        ]
        if is_cheat(name):
            bad = sum(is_rewarded(row, honest) for row in some)
            beside = figures(honest)
        else:
            bad = sum(row["end"] != "accepted" and row["stage"] not in UNDECIDED for row in some)
            beside = ""
        wrong += bad
        ends = ", ".join(f"{n} {end}" for end, n in Counter(r["end"] for r in some).most_common())
        shown = "on" if screen else "off"
        lines.append(
            f"| {name} | {busy} | {shown} | {ends} | {figures(some)} | {beside} | {bad or ''} |"
        )
    return "\n".join(lines), wrong


def figures(rows: list[dict[str, Any]]) -> str:
    values = sorted(row["speedup"]["value"] for row in rows if row["speedup"])
    if not values:
        return ""
    least, greatest = f"{values[0]:.2f}", f"{values[-1]:.2f}"
    return least if least == greatest else f"{least} to {greatest}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--times", type=int, default=3)
    parser.add_argument("--busy", type=int, default=0, help="programs that keep a core busy")
    parser.add_argument("--screen", choices=("on", "off"), nargs="+", default=["on", "off"])
    parser.add_argument("--only", nargs="+", default=[], help="what names begin with, up to the _")
    parser.add_argument("--json", type=Path, help="a line for each evaluation is added to it")
    parser.add_argument("--table", type=Path, help="judge nothing, and show what is in this file")
    arguments = parser.parse_args()
    if arguments.table is None and arguments.folder is None:
        parser.error("give a folder, or --table and a file")
    arguments.screen = [each == "on" for each in arguments.screen]
    if arguments.table is not None:
        rows = [json.loads(line) for line in arguments.table.read_text().splitlines()]
        rows = [row for row in rows if "name" in row]
    else:
        rows = measure(arguments)
    text, wrong = table(rows)
    print(text)
    return 1 if wrong else 0


def measure(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    rows = []
    write(arguments.json, {"machine": describe_machine(), "busy": arguments.busy})
    with neighbours(arguments.busy):
        for row in passes(arguments):
            rows.append(row)
            write(arguments.json, row)
    return rows


def write(path: Path | None, row: dict[str, Any]) -> None:
    if path is not None:
        with path.open("a") as file:
            file.write(json.dumps(row) + "\n")


if __name__ == "__main__":
    sys.exit(main())
