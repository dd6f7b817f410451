"""Kill a run at random moments, resume it each time, and see whether anything is lost.

    python benchmarks/kill_and_resume.py --kills 200

The run is a real process with a real store; proposals and evaluations are made up and take a few
milliseconds. After the last kill it runs to its end. Then its events must fold into a state in
which no step is missing, none was evaluated twice, and none is left in flight.
"""

from __future__ import annotations

import argparse
import json
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from loop_overhead import Nudger, program, speed_of

from kernel_smith.proposers.base import InThreads
from kernel_smith.records import Budget, Proposal, RunConfig, StepEvaluated, StepProposed, Task
from kernel_smith.runs.run import Run, fold
from kernel_smith.store import Store
from kernel_smith.testing.trivial import TrivialEngine


def work(path: Path, evaluations: int, seed: int) -> None:
    """Start the run, or go on with it."""
    engine = TrivialEngine(speed_of, seconds=0.002)
    workers = {"nudger": InThreads(Nudger(0.001, seed), 2)}
    with Store.open(path, create=True) as store:
        runs = store.runs()
        if runs:
            with Run.resume(store, runs[0].id) as run:
                run.evolve(workers, engine, lambda *_: None).run(opening(run))
            return
        task = Task(name="numbers", source="class Model: pass")
        config = RunConfig(
            backend="cpp", proposers={"nudger": 1.0}, budget=Budget(evaluations=evaluations)
        )
        with Run.start(store, task, config) as run:
            run.evolve(workers, engine, lambda *_: None).run(opening(run))


def opening(run: Run) -> list[tuple[str, object]]:
    """The first program, unless the run has it already."""
    first = Proposal(candidate=program(0.5), proposer="start")
    return [] if run.state.steps else [("start", lambda: first)]


def examine(path: Path) -> dict[str, int]:
    with Store.open(path) as store:
        name = store.runs()[0].id
        events = [event for _, event in store.events(name)]
        state = fold(store, name)
    proposed = [event.step for event in events if isinstance(event, StepProposed)]
    evaluated = Counter(event.step for event in events if isinstance(event, StepEvaluated))
    programs = Counter(
        event.proposal.candidate.content_hash for event in events if isinstance(event, StepProposed)
    )
    return {
        "events": len(events),
        "evaluated": len(evaluated),
        "evaluated_twice": sum(count > 1 for count in evaluated.values()),
        "proposed_twice": sum(count > 1 for count in programs.values()),
        "numbers_used_twice": len(proposed) - len(set(proposed)),
        "in_flight": len(state.in_flight()),
        "counted": state.funnel["evaluated"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--evaluations", type=int, default=4000)
    parser.add_argument("--longest", type=float, default=1.5, help="seconds between kills")
    parser.add_argument("--worker", type=Path, default=None, help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, default=0, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    if chosen.worker:
        work(chosen.worker, chosen.evaluations, chosen.seed)
        return
    rng = random.Random(chosen.seed)
    killed = 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "runs.sqlite"
        for attempt in range(chosen.kills + 1):
            command = [sys.executable, __file__, "--worker", str(path), "--seed", str(attempt)]
            process = subprocess.Popen([*command, "--evaluations", str(chosen.evaluations)])
            if attempt < chosen.kills:
                time.sleep(rng.uniform(0.2, chosen.longest))
                process.send_signal(signal.SIGKILL)
            killed += process.wait() == -signal.SIGKILL
        found = examine(path)
    print(json.dumps({"kills": killed, **found}, indent=1))
    lost = ("evaluated_twice", "proposed_twice", "numbers_used_twice", "in_flight")
    sys.exit(any(found[name] for name in lost) or found["counted"] < chosen.evaluations)


if __name__ == "__main__":
    main()
