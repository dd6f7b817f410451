"""How far can the judge's timings be trusted beside busy neighbours? On many cores at once.

What clock_accuracy.py measures, shared out among pairs of cores that work at the same time. A pair
is a machine of two cores to whoever is confined to it: a judge, what it times, and its neighbours.
Two cores are left to everybody else. All numbers of neighbours take turns, so that a run that is
cut short has about as many evaluations of each.

    python benchmarks/clock_on_pairs.py --pairs 7 --runs 50 --padded-runs 20 --json results.json
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import queue
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from clock_accuracy import LABELS, RUNS_PER_JUDGE, Row, earlier, results_of, table
from common import progress

from kernel_smith.records import Options, Sampling

_MEASURING = Path(__file__).with_name("clock_accuracy.py")
_SHOWN = 2000  # characters of what a share that failed had to say


class Share(NamedTuple):
    """So many evaluations by one judge."""

    neighbours: int
    label: str
    runs: int


def shares(neighbours: list[int], asked: dict[str, int], done: list[Row]) -> Iterator[Share]:
    """What is still to do, in an order that treats all alike."""
    left = {}
    for count, label in itertools.product(sorted(neighbours, reverse=True), LABELS):
        had = sum((row.neighbours, row.label) == (count, label) for row in done)
        left[count, label] = max(asked[label] - had, 0)
    while any(left.values()):
        for (count, label), runs in left.items():
            if taken := min(runs, RUNS_PER_JUDGE):
                left[count, label] -= taken
                yield Share(count, label, taken)


@dataclass
class Pairs:
    """Pairs of cores that take shares from a queue until it is empty or the time is over."""

    waiting: queue.SimpleQueue[Share]
    sampling: Sampling
    until: float
    rows: list[Row]
    json: Path
    machine: str
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def work(self, cores: tuple[int, int]) -> None:
        with tempfile.TemporaryDirectory() as folder:
            for number in itertools.count():
                left = self.until - time.monotonic()
                if left <= 0:
                    return
                try:
                    share = self.waiting.get_nowait()
                except queue.Empty:
                    return
                self._measure(share, cores, left, Path(folder) / f"{number}.json")

    def _measure(self, share: Share, cores: tuple[int, int], left: float, part: Path) -> None:
        runs = {label: share.runs if label == share.label else 0 for label in LABELS}
        found = subprocess.run(
            [
                *(sys.executable, str(_MEASURING), "--cores", *map(str, cores)),
                *("--neighbours", str(share.neighbours), "--json", str(part)),
                *("--runs", str(runs["itself"]), "--padded-runs", str(runs["5% more work"])),
                *("--target", str(self.sampling.target), "--minutes", str(left / 60)),
                *("--max-seconds", str(self.sampling.max_seconds)),
            ],
            capture_output=True,
            text=True,
        )
        with self._lock:
            if found.returncode:
                print(f"\n{share} on {cores}: {found.stderr[-_SHOWN:]}", file=sys.stderr)
            self.rows += earlier(part)
            self._write()
            progress(f"{len(self.rows)} evaluations, {self.waiting.qsize()} shares wait")

    def _write(self) -> None:
        results = results_of(self.rows, Options(sampling=self.sampling))
        results["machine"]["cores"] = self.machine
        self.json.write_text(json.dumps({**results, "rows": self.rows}) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--pairs", type=int, default=7)
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--padded-runs", type=int, default=20)
    parser.add_argument("--target", type=float, default=0.01)
    parser.add_argument("--max-seconds", type=float, default=1.0)
    parser.add_argument("--neighbours", type=int, nargs="+", default=[0, 1, 2, 4])
    parser.add_argument("--minutes", type=float, default=600.0, help="start no run after that")
    parser.add_argument("--json", type=Path, required=True, help="results, also to go on from")
    arguments = parser.parse_args()
    allowed = sorted(os.sched_getaffinity(0))
    cores = allowed[2:] if len(allowed) > 2 else allowed
    pairs = list(zip(cores[::2], cores[1::2], strict=False))[: arguments.pairs]
    rows = earlier(arguments.json)
    asked = dict(zip(LABELS, (arguments.runs, arguments.padded_runs), strict=True))
    waiting: queue.SimpleQueue[Share] = queue.SimpleQueue()
    for share in shares(arguments.neighbours, asked, rows):
        waiting.put(share)
    at_work = Pairs(
        waiting,
        Sampling(target=arguments.target, max_seconds=arguments.max_seconds),
        time.monotonic() + 60 * arguments.minutes,
        rows,
        arguments.json,
        f"{os.cpu_count()}, of which each judge had 2, {len(pairs)} judges at a time",
    )
    threads = [threading.Thread(target=at_work.work, args=(pair,)) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(table(json.loads(arguments.json.read_text())))


if __name__ == "__main__":
    main()
