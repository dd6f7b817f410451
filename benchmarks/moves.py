"""Which moves pay? From recorded runs, the figures that the guides of `knowledge` quote.

    python benchmarks/moves.py            # writes src/kernel_smith/knowledge/measured.json
    python benchmarks/moves.py --check    # exits with 1 if that file says something else

Named edits of the mutator and numbers of the tuner: every step of `results/training/steps.sqlite`,
with its gain over the parent. Series of told programs: `results/told_*.json`. A gain counts as one
if its whole 95% interval does, and then with its lower end, so that luck flatters nobody.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kernel_smith.knowledge.measured import AllMeasured, Measured, Move, Point, Series
from kernel_smith.proposers.mutator.registry import EDITS
from kernel_smith.records import StepGain
from kernel_smith.tasks import find_task
from kernel_smith.trajectories.steps import read_steps

HERE = Path(__file__).parent
STORE = HERE.parent / "results" / "training" / "steps.sqlite"
TARGET = HERE.parent / "src" / "kernel_smith" / "knowledge" / "measured.json"
LEAST_TRIES = 10
TUNED = "another "
EDIT_NAMES = {edit.name for edit in EDITS}


def moves_of(store: Path) -> tuple[Move, ...]:
    """Every kind of change that was tried often enough, and that the mutator or tuner still
    makes."""
    gains: defaultdict[str, list[StepGain | None]] = defaultdict(list)
    for step in read_steps([store]):
        if step.parent is not None and step.proposer in ("mutator", "tuner"):
            gains[kind_of(step.proposer, step.summary)].append(step.gain)
    possible = [name for name in gains if name.startswith(TUNED) or name in EDIT_NAMES]
    often = {name: gains[name] for name in possible if len(gains[name]) >= LEAST_TRIES}
    return tuple(move_of(name, tries) for name, tries in sorted(often.items()))


def kind_of(proposer: str, summary: str) -> str:
    """`simd-loop: loop over i in f` is simd-loop; `unroll#2 8 -> 4` is a change of unroll."""
    if proposer == "mutator":
        return summary.partition(":")[0]
    return f"{TUNED}{summary.split()[0].partition('#')[0]}"


def move_of(name: str, tries: list[StepGain | None]) -> Move:
    known = [gain.overall for gain in tries if gain is not None]
    lows = [each.low for each in known if each.low > 1]
    return Move(
        name=name,
        tried=len(tries),
        faster=len(lows),
        slower=sum(each.high < 1 for each in known),
        gain=round(math.exp(sum(map(math.log, lows)) / len(lows)), 3) if lows else None,
    )


def series_of(path: Path) -> tuple[Series, ...]:
    rows = json.loads(path.read_text())["tasks"].values()
    return tuple(one_series(row) for row in rows if row.get("final"))


def one_series(row: dict[str, Any]) -> Series:
    final = {name: (each["low"], each["high"]) for name, each in row["final"].items()}
    timed = [each for each in row["told"] if each["speedup"] is not None]
    return Series(
        task=row["task"],
        family=find_task(row["task"]).family,
        programs=tuple(
            Point(change=change_of(each["program"]), speed=round(each["speedup"], 3))
            for each in timed
        ),
        eager=rounded(final["eager"]),
        compile=rounded(final["compile"]) if "compile" in final else None,
    )


def change_of(program: str) -> str:
    """`3_four_rows_at_once.py`: four rows at once."""
    return Path(program).stem.partition("_")[2].replace("_", " ")


def rounded(interval: Iterable[float]) -> tuple[float, float]:
    low, high = interval
    return round(low, 3), round(high, 3)


def measure() -> AllMeasured:
    return AllMeasured(
        machines=(
            Measured(
                backend="cpp",
                hardware="aarch64",
                machine="an ARM Neoverse N1 of which one core is timed, g++ 12.2, torch 2.13",
                moves=moves_of(STORE),
                series=series_of(HERE / "results" / "told_cpu.json"),
            ),
            Measured(
                backend="triton",
                hardware="H200",
                machine="an NVIDIA H200, Triton 3.6, torch 2.11",
                series=series_of(HERE / "results" / "told_h200.json"),
            ),
        )
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare, and write nothing")
    text = measure().model_dump_json(indent=1) + "\n"
    if parser.parse_args().check:
        sys.exit(0 if TARGET.read_text() == text else f"{TARGET} says something else")
    TARGET.write_text(text)
    print(f"wrote {TARGET}")


if __name__ == "__main__":
    main()
