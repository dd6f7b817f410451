"""A built-in suite without any model, on a CPU or a GPU, resumable; and what each part is worth.

    python benchmarks/suite.py cpu -o FOLDER --minutes 60
    python benchmarks/suite.py gpu -o FOLDER --minutes 8 --lanes 8 --at-once 11 --evaluations 4
    python benchmarks/suite.py gpu -o FOLDER --tasks 4 --arm all --arm "without race" --arm none
    python benchmarks/suite.py cpu -o FOLDER --draw 10 --arm all --arm "only templates"
    python benchmarks/suite_table.py FOLDER --json benchmarks/results/suite_h200.json

Every task is optimized by the embedded default, and its winner is judged anew, against eager,
torch.compile and, on a GPU, max-autotune. Of the GPU suite these are the 13 tasks that
results/README.md began with, and 20 others that `Random(22)` draws; `--draw N` has it draw N tasks
of the suite, so that the first of more are the same. Run it again to go on: what is
done is kept in the folder. `--arm` leaves a part out ("without PART"), or all but one ("only PART",
with what it cannot do without); "none" is the compiler's program alone. Numbers are swept on a GPU
only by an arm that says so ("with sweep").
"""

from __future__ import annotations

import argparse
import contextlib
import random
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from kernel_smith.bench.arms import EMBEDDED, Plan, Protocol
from kernel_smith.bench.folder import Winners, write_result
from kernel_smith.bench.runner import Job, Runner
from kernel_smith.bench.stamping import stamped
from kernel_smith.bench.suites import Problem, Selection, find_problems
from kernel_smith.evaluation.engines.pool import LocalPool
from kernel_smith.records import Budget, Event, RunConfig, Sampling
from kernel_smith.records.bench import Arm, BenchRow
from kernel_smith.runs.campaign import Campaign
from kernel_smith.runs.first_programs import OWN_KERNELS, RACE, RECIPES, REWRITES
from kernel_smith.runs.state import RunState
from kernel_smith.store import Store

FIRST_OF_GPU = [
    "add_rms_norm_llm",
    "bias_gradient_tokens",
    "adamw_step_mixed",
    "rotary_embedding_llm",
    "expert_combine",
    "cross_entropy_vocab",
    "query_key_rms_norm",
    "decode_page_metadata",
    "greedy_token",
    "squared_relu_bias",
    "padded_attention_softmax",
    "silu_mul_fp8_quantise",
    "fp8_quantise_per_token",
]
MORE_OF_GPU, DRAWN_BY = 20, 22
BACKENDS = {"cpu": "cpp", "gpu": "triton"}
BASELINES = {"cpu": ("eager", "compile"), "gpu": ("eager", "compile", "max-autotune")}

SWEEP, WORKERS = "sweep", ("tuner", "mutator", "merger")
LEFT_OUT = {
    "portfolio": RECIPES,
    "templates": OWN_KERNELS,
    "rewrites": REWRITES,
    "race": RACE,
}
PARTS = (*LEFT_OUT, SWEEP, *WORKERS)
USUAL = {"cpu": frozenset(PARTS), "gpu": frozenset(PARTS) - {SWEEP}}
NEEDS = {SWEEP: {"tuner"}, "race": {"portfolio", "templates"}}
PATIENCE = 300.0  # seconds that one evaluation may take


@dataclass(frozen=True)
class PartlyPlan(Plan):
    """The embedded default with some of its parts."""

    parts: frozenset[str] = frozenset()
    sampling: Sampling = field(default_factory=Sampling)

    def config(self, problem: Problem) -> RunConfig:
        config = super().config(problem)
        weights = {n: w for n, w in config.proposers.items() if n in self.parts}
        seed = config.settings["seed"]
        left_out = sorted(name for part, name in LEFT_OUT.items() if part not in self.parts)
        settings = config.settings | {"seed": seed | {"left_out": left_out}}
        settings["tuner"] = {SWEEP: SWEEP in self.parts}
        confirmation = config.confirmation.model_copy(update={"sampling": self.sampling})
        changed = {"proposers": weights, "settings": settings, "confirmation": confirmation}
        return config.model_copy(update=changed)

    def describe(self) -> Arm:
        arm = super().describe()
        weights = {n: w for n, w in arm.proposers.items() if n in self.parts}
        confirmation = arm.confirmation.model_copy(update={"sampling": self.sampling})
        return arm.model_copy(update={"proposers": weights, "confirmation": confirmation})


def parts_of(arm: str, usual: frozenset[str]) -> frozenset[str]:
    """The parts that an arm has, by its name."""
    how, _, part = arm.partition(" ")
    if arm in ("all", "none"):
        return usual if arm == "all" else frozenset()
    if part not in PARTS or how not in ("with", "without", "only"):
        sys.exit(f"no arm is called {arm!r}: all, none, or with, without or only one of {PARTS}")
    needed = frozenset({part} | NEEDS.get(part, set()))
    if how == "without":
        return frozenset(p for p in usual if p != part and part not in NEEDS.get(p, ()))
    return needed if how == "only" else usual | needed


def make_plans(chosen: argparse.Namespace) -> list[PartlyPlan]:
    """One for each arm, all with the same budget."""
    minutes = chosen.device_minutes
    protocol = Protocol(
        backend=BACKENDS[chosen.suite],
        limits={
            "evaluations": chosen.evaluations,
            "device_seconds": None if minutes is None else 60 * minutes,
        },
        baselines=BASELINES[chosen.suite],
        lanes=max(1, chosen.lanes // chosen.at_once),
        seed=chosen.seed,
    )
    sampling = Sampling(max_seconds=chosen.confirm_seconds)
    return [
        PartlyPlan(arm, protocol, EMBEDDED, None, parts_of(arm, USUAL[chosen.suite]), sampling)
        for arm in chosen.arm or ["all"]
    ]


def chosen_problems(suite: str, most: int | None, drawn: int | None = None) -> list[Problem]:
    """Those of the rule, in its order, and of them the first so many; or as many drawn ones."""
    found = {problem.name: problem for problem in find_problems([suite], Selection())}
    names = list(found)
    if drawn is not None:
        drawn_names = random.Random(DRAWN_BY).sample(sorted(names), len(names))
        return [found[name] for name in drawn_names[:drawn]]
    if suite == "gpu":
        others = sorted(set(names) - set(FIRST_OF_GPU))
        names = FIRST_OF_GPU + sorted(random.Random(DRAWN_BY).sample(others, MORE_OF_GPU))
    return [found[name] for name in names[:most]]


class Lines:
    """Prints a line for each task that is done with."""

    def hear(self, job: Job, event: Event, state: RunState) -> None: ...

    def done(self, row: BenchRow, *, known: bool) -> None:
        if known:
            return
        shown = {name: round(speedup.value, 2) for name, speedup in row.speedups.items()}
        said = shown or " ".join(row.why.split())[:160]
        spent = f"{row.cost.device_seconds:.0f} of {row.cost.seconds:.0f} s"
        print(f"{row.arm}: {row.problem}: {row.status} {said} ({spent})", flush=True)


class _InAHurry(Exception):
    """What is being evaluated is evaluated again by the next call: nobody waits for it."""


def solve(plans: Sequence[Plan], problems: Sequence[Problem], chosen: argparse.Namespace) -> int:
    """Do what is left, in the minutes that there are; how many are not done with."""
    chosen.output.mkdir(parents=True, exist_ok=True)
    jobs = [Job(plan, problem) for problem in problems for plan in plans]
    winners, left = Winners(chosen.output), 0
    with (
        contextlib.suppress(_InAHurry),
        Store.open(chosen.output / "runs.sqlite", create=True) as store,
        LocalPool(chosen.lanes, patience=PATIENCE) as engine,
    ):
        campaign = Campaign(store, time.monotonic() + 60 * chosen.minutes)
        runner = Runner(campaign, engine, jobs, Budget(), Lines(), winners.keep)
        rows = runner.run(chosen.at_once)
        keep(rows, plans, winners, chosen)
        left = sum(row.status == "unfinished" for row in rows)
        if left:
            raise _InAHurry
    return left


def keep(
    rows: Sequence[BenchRow], plans: Sequence[Plan], winners: Winners, chosen: argparse.Namespace
) -> None:
    result = stamped(
        rows,
        plans,
        winners.places,
        [chosen.suite],
        Selection(),
        refused="count",
        seed=chosen.seed,
        at_once=chosen.at_once,
        lanes=chosen.lanes,
    )
    write_result(chosen.output, result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("suite", choices=BACKENDS)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--minutes", type=float, default=600.0, help="the next call goes on")
    parser.add_argument("--evaluations", type=int, default=10, help="of each task and arm")
    parser.add_argument("--device-minutes", type=float, help="of each task and arm, at most")
    parser.add_argument("--lanes", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=None, help="so many tasks; as many as lanes")
    parser.add_argument("--arm", action="append", default=None)
    parser.add_argument("--tasks", type=int, default=None, help="only the first so many")
    parser.add_argument("--draw", type=int, default=None, help="so many tasks, drawn by a rule")
    parser.add_argument("--task", action="append", default=None, help="only these of them")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument(
        "--confirm-seconds", type=float, default=4.0, help="at most, per workload and baseline"
    )
    chosen = parser.parse_args()
    chosen.at_once = chosen.at_once or chosen.lanes
    plans = make_plans(chosen)
    problems = chosen_problems(chosen.suite, chosen.tasks, chosen.draw)
    wanted = [each for each in problems if chosen.task is None or each.name in chosen.task]
    left = solve(plans, wanted, chosen)
    print(f"{left} left" if left else "all done", flush=True)


if __name__ == "__main__":
    main()
