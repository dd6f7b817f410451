"""Where do the mutator's Triton edits apply, and what do chains of them make of seeds?

    python benchmarks/triton_edits.py --seeds folder            # sites of each edit
    python benchmarks/triton_edits.py --seeds folder --chains   # what the kernels are made of
    python benchmarks/triton_edits.py --seeds folder --draws    # what the mutator begins with

It needs no GPU: seeds are made, and kernels compiled, for one that is not there. Seeds are kept in
the folder, and made only if they are not there yet; a task takes 10 to 60 seconds.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
import tempfile
from collections import Counter
from dataclasses import asdict
from pathlib import Path

from common import progress

from kernel_smith.errors import UserError
from kernel_smith.evaluation.compile_only.targets import find_target
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.proposers.mutator import EDITS, Mutator
from kernel_smith.proposers.seed import make_seed
from kernel_smith.records import Candidate, Elite, Reason, Request, Task
from kernel_smith.tasks import builtin_tasks, find_task

TARGET = "sm_90"
DRAWS, RUNS = 10, 8
# What was told of these tasks on an H200 did this, at every place where it can be done.
CHAINS = {
    "add_rms_norm_llm": ("row-in-registers", "aligned-row"),
    "fp8_quantise_per_token": ("row-in-registers", "aligned-row"),
    "cross_entropy_vocab": ("one-pass-softmax", "aligned-loop", "tiles-in-flight"),
    "query_key_rms_norm": ("one-launch",),
    "adamw_step_mixed": ("unmasked-programs",),
}
# Runs beside `task.py`, `candidate.py` and `request.json`, and prints what each kernel is made of.
INSIDE = """
import json, os, re
from collections import Counter
import torch
from kernel_smith.evaluation.compile_only.inside import driver, main, pretend
from kernel_smith.evaluation.compile_only.inside.recorder import Recorder

class Listening(Recorder):
    def _add(self, src, compiled, seconds):
        super()._add(src, compiled, seconds)
        moved = Counter()
        for word, how in re.findall(r"\\b(ld|st)\\.global([\\w.:]*)", compiled.asm["ptx"]):
            wide = re.search(r"(?:v(\\d)\\.)?b(\\d+)", how)
            moved[f"{word} {int(wide[1] or 1) * int(wide[2])}"] += 1
        kernel = self._kernels[compiled.hash]
        used = [kernel.registers, kernel.spill_bytes, kernel.warps]
        print(json.dumps([self.workload, *used, moved]))

request = json.load(open("request.json"))
recorder = Listening("report.json", "candidate.py")
driver.install(request["target"], recorder)
pretend.dress_up(request["target"])
with pretend.PretendDevice(), torch.no_grad():
    main._run(request["workloads"], recorder)
"""


def seed_of(task: Task, folder: Path) -> str | None:
    """The compiler's seed; None where it makes none, which the folder remembers, too."""
    path = folder / f"{task.name}.py"
    if not path.exists():
        progress(f"seed of {task.name}")
        try:
            text = make_seed(task, "cuda").source
        except UserError:
            text = ""
        path.write_text(text, encoding="utf-8")
    return path.read_text(encoding="utf-8") or None


def count_sites(tasks: list[Task], folder: Path) -> None:
    places: Counter[str] = Counter()
    seeds: Counter[str] = Counter()
    made = [seed for task in tasks if (seed := seed_of(task, folder)) is not None]
    edits = [edit for edit in EDITS if "triton" in edit.backends]
    for seed in made:
        for edit in edits:
            own = [site for site in edit.sites(seed) if site.places == 1]
            if own:
                places[edit.name] += len(own)
                seeds[edit.name] += 1
    print(f"{len(made)} seeds of {len(tasks)} tasks")
    for edit in edits:
        print(f"{edit.name:22} {places[edit.name]:5} sites in {seeds[edit.name]:3} seeds")


def compiled(task: Task, source: str) -> list[str]:
    """A line for each kernel: registers, spills, warps, loads and stores by their bits."""
    workloads = [each.model_dump(include={"name", "params"}) for each in task.workloads]
    request = {"target": asdict(find_target(TARGET)), "workloads": workloads}
    with tempfile.TemporaryDirectory() as folder:
        for name, text in (
            ("task.py", task.source),
            ("candidate.py", source),
            ("request.json", json.dumps(request)),
        ):
            Path(folder, name).write_text(text, encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-c", INSIDE],
            cwd=folder,
            env=os.environ | {"TRITON_CACHE_DIR": folder},
            capture_output=True,
            text=True,
        )
    if done.returncode != 0:
        return [done.stderr[-500:]]
    return [_line(*json.loads(line)) for line in done.stdout.splitlines()]


def _line(workload: str, registers: int, spilt: int, warps: int, moved: dict[str, int]) -> str:
    words = ", ".join(f"{count} x {what}" for what, count in sorted(moved.items()))
    return f"{workload:10} {registers:3} registers, {spilt} bytes spilt, {warps:2} warps: {words}"


def show_chains(folder: Path) -> None:
    edits = {edit.name: edit for edit in EDITS}
    for name, chain in CHAINS.items():
        task = find_task(name)
        source = seed_of(task, folder)
        assert source is not None
        for step in ("seed", *chain):
            if step != "seed":
                sites = edits[step].sites(source)
                source = edits[step].apply(source, sites[0]) if sites else source
                step = f"{step}: {sites[0] if sites else 'nowhere'}"
            launches = len(re.findall(r"^    \w+\[.*\]\(", source, re.MULTILINE))
            print(f"\n{name}, {step}: {launches} launches in all workloads")
            print("\n".join(f"  {line}" for line in compiled(task, source)))


def show_draws(tasks: list[Task], folder: Path) -> None:
    """Shares of the edits in the first proposals at a seed, if none of them pays."""
    drawn: Counter[str] = Counter()
    for task in tasks:
        source = seed_of(task, folder)
        for seed in range(RUNS if source is not None else 0):
            candidate = Candidate(source=source or "", backend="triton")
            judged = made_up(task, candidate, Reason.WRONG_VALUES)
            parent = Elite(candidate=candidate, evaluation=judged)
            request = Request(task=task, backend="triton", parent=parent, seed=seed)
            mutator = Mutator(seed)
            for _ in range(DRAWS):
                proposal = mutator.propose(request)
                drawn.update(proposal.details["edits"])
                mutator.learn(proposal, judged)
    for name, count in drawn.most_common():
        print(f"{name:22} {count / drawn.total():6.1%}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("tasks", nargs="*", metavar="TASK", help="all of the GPU suite by default")
    parser.add_argument("--seeds", type=Path, required=True, help="where seeds are kept")
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--chains", action="store_true")
    what.add_argument("--draws", action="store_true")
    asked = parser.parse_args()
    asked.seeds.mkdir(exist_ok=True)
    tasks = [find_task(name) for name in asked.tasks] or builtin_tasks("gpu")
    if asked.chains:
        show_chains(asked.seeds)
    elif asked.draws:
        show_draws(tasks, asked.seeds)
    else:
        count_sites(tasks, asked.seeds)


if __name__ == "__main__":
    main()
