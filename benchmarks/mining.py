"""How many classes of a package become tasks? The yield of `kernel-smith data mine`.

For each source: classes found, those that stand alone (with all they need, no duplicates), those
that ran, and those that the judge admitted; then the most frequent reasons of refusal.

    python benchmarks/mining.py [--limit 300] [--json results.json] [-o FOLDER] SOURCE...

A source is an installed package, a folder, or a wheel as `pip download --no-deps NAME` writes it.
With -o the task files are kept, and the same command continues where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from pathlib import Path
from typing import Any

from common import describe_machine, progress

from kernel_smith.trajectories.mine import MineSettings, mine
from kernel_smith.trajectories.mine.library import read_library


def measure(source: str, folder: Path, limit: int | None) -> dict[str, Any]:
    library = read_library(source)
    started = time.monotonic()
    summary = mine(MineSettings([source], folder, limit=limit), progress)
    return {
        "package": library.name,
        "version": library.version,
        "seconds": round(time.monotonic() - started),
        **summary.model_dump(include={"found", "standalone", "ran", "written"}),
        "refusals": summary.refusals,
        "families": summary.families,
    }


def show(row: dict[str, Any]) -> None:
    print(f"\r{row['package']} {row['version']}, {row['seconds']} s")
    counts = (f"{row[name]} {name}" for name in ("found", "standalone", "ran", "written"))
    print("  " + ", ".join(counts))
    for kind in ("refusals", "families"):
        print(f"  {kind}: " + ", ".join(f"{name} {count}" for name, count in row[kind].items()))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("sources", nargs="+")
    parser.add_argument("--limit", type=int, help="classes per source; default: all")
    parser.add_argument("--json", type=Path)
    parser.add_argument("-o", "--output", type=Path, help="keep the task files here")
    arguments = parser.parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as scratch:
        for source in arguments.sources:
            folder = (arguments.output or Path(scratch)) / Path(source).name.partition("-")[0]
            rows.append(measure(source, folder, arguments.limit))
            show(rows[-1])
    if arguments.json:
        result = {"machine": describe_machine(), "limit": arguments.limit, "rows": rows}
        arguments.json.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
