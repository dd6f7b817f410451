"""What does it take to judge a large workload on the CPU?

A softmax over 1024 rows of 131,072 numbers, half a gigabyte in and as much out, with the suite's
own kernel as candidate. Processor time is that of the judge (drawing inputs, the oracle, comparing)
and of the other processes, less compiling and timed calls. Memory is that of all processes together
at the worst moment, what they share counted once.

    python benchmarks/large_on_cpu.py [--rows 1024] [--json results.json]
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
import threading
import time
from pathlib import Path

from common import describe_machine, progress

from kernel_smith.evaluation.engines import EvaluationCache, LocalEngine
from kernel_smith.records import Candidate, Options
from kernel_smith.tasks import find_task, read_task

TASK = """
import torch

TASK = {{"library_calls": False}}


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)


def get_inputs():
    return [torch.randn({rows}, {columns}) * 2]
"""
TICKS = os.sysconf("SC_CLK_TCK")


class Observer(threading.Thread):
    """Looks at all processes below this one, several times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.processor: dict[int, float] = {}
        self.roots: set[int] = set()
        self.peak = 0

    def run(self) -> None:
        while True:
            self.look()
            time.sleep(0.1)

    def look(self) -> None:
        parents = {int(p.name): parent_of(p) for p in Path("/proc").iterdir() if p.name.isdigit()}
        below, memory = {os.getpid()}, 0
        while more := {pid for pid, parent in parents.items() if parent in below} - below:
            below |= more
        for pid in below - {os.getpid()}:
            memory += proportional_bytes(pid)
            self.processor[pid] = max(self.processor.get(pid, 0.0), processor_seconds(pid))
            if parents[pid] == os.getpid():
                self.roots.add(pid)
        self.peak = max(self.peak, memory)

    def seconds(self) -> tuple[float, float]:
        """Of the judge, and of all others."""
        judge = sum(self.processor[pid] for pid in self.roots)
        return judge, sum(self.processor.values()) - judge


def parent_of(process: Path) -> int:
    try:
        return int((process / "stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def processor_seconds(pid: int) -> float:
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / TICKS


def proportional_bytes(pid: int) -> int:
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text()
    except OSError:
        return 0
    return sum(int(line.split()[1]) << 10 for line in text.splitlines() if line[:4] == "Pss:")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=1024)
    parser.add_argument("--columns", type=int, default=131072)
    parser.add_argument("--json", type=Path)
    chosen = parser.parse_args()
    observer = Observer()
    observer.start()
    source = Path(find_task("row_softmax").starts["cpp"]).read_text()
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "large_softmax.py"
        path.write_text(TASK.format(rows=chosen.rows, columns=chosen.columns))
        begin = time.perf_counter()
        with LocalEngine(EvaluationCache(Path(folder))) as engine:
            evaluation = engine.evaluate(
                read_task(path), Candidate(source=source), Options(), progress=progress
            )
        wall = time.perf_counter() - begin
    judge, others = observer.seconds()
    spent = evaluation.seconds
    timed = 0.0
    if evaluation.timing is not None:
        (large,) = evaluation.timing.workloads
        per_call = large.candidate.p50 + sum(b.seconds.p50 for b in large.baselines)
        timed = large.calls * per_call * len(evaluation.timing.cores)
    beside = judge + others - timed - spent["compiler alone"]
    report = {
        "machine": describe_machine(),
        "rows": chosen.rows,
        "columns": chosen.columns,
        "stage": str(evaluation.stage),
        "reason": evaluation.reason and str(evaluation.reason),
        "wall_seconds": round(wall, 1),
        "judge_processor_seconds": round(judge, 1),
        "other_processor_seconds": round(others, 1),
        "beside_compiling_and_timed_calls": round(beside, 1),
        "peak_gib": round(observer.peak / (1 << 30), 2),
        "steps": {name: round(seconds, 2) for name, seconds in spent.items()},
        "notes": evaluation.notes,
    }
    print(json.dumps(report, indent=2))
    if chosen.json:
        chosen.json.write_text(json.dumps(report, indent=2) + "\n")


if __name__ == "__main__":
    main()
