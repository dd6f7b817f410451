"""Does it pay to learn which edit to choose? Policies over the same options, on families held out.

    python benchmarks/choices.py [--table TABLE.jsonl] [--json results.json] [--policy policy.json]

The options are those that were judged: by recorded runs (`results/training/steps.sqlite`), and in
tables of `choices_table.py`. Families are dealt into folds by a fixed seed; what is compared on a
fold was fitted without its families. Every task of a table has `--seeds` runs of 8 proposals with
each arm, by evaluations that are known already. Intervals are from drawing tasks, and runs of each,
anew. `--policy` writes the policy after RL, fitted to all families.
"""

from __future__ import annotations

import argparse
import json
import math
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy
from common import progress
from moves import STORE, move_of

from kernel_smith.proposers.chooser.policy import KIND, Policy
from kernel_smith.proposers.mutator.priors import Expected, learnt_from
from kernel_smith.records import Interval, StepGain
from kernel_smith.runs.config import own_starts
from kernel_smith.tasks import find_task
from kernel_smith.training.choices import boosting, weights
from kernel_smith.training.choices.examples import Example, examples_of
from kernel_smith.training.choices.families import deal, kinds_in, splits
from kernel_smith.training.choices.recorded import recorded_states
from kernel_smith.training.choices.replay import Arm, ByKind, ByPolicy, Knowing, Uniform, replay
from kernel_smith.training.choices.table import Table

FOLDS, FOLD_SEED = 6, 26
PROPOSALS = 8
SHOWN = (1, 2, 4, 8)
RESAMPLES = 2000
SHARP = 0.25  # of an arm that knows of kinds alone, and hardly hesitates
COMPARED = (
    ("RL", "SFT"),
    ("RL", "SFT, sharper"),
    ("RL", "prior per kind"),
    ("trees", "prior per kind"),
    ("trees", "Thompson"),
    ("trees", "RL"),
    ("RL", "best kinds"),
    ("trees", "best kinds"),
    ("best kinds", "prior per kind"),
    ("Thompson", "random"),
    ("prior per kind", "random"),
)

Make = Callable[[], Arm]
Runs = dict[str, list[list[float]]]
"""By task: for each seed the logarithms of what was reached after each proposal."""


def prior_of(examples: Sequence[Example]) -> dict[str, Expected]:
    gains = defaultdict(list)
    for example in examples:
        for choice in example.choices:
            speed = math.exp(choice.drift) if choice.drift is not None else None
            gains[choice.edit].append(None if speed is None else certainly(speed))
    return learnt_from(move_of(edit, tries) for edit, tries in gains.items())


def certainly(speed: float) -> StepGain:
    return StepGain(overall=Interval(value=speed, low=speed, high=speed), side_by_side=True)


def arms_from(known: Sequence[Example]) -> dict[str, Make]:
    """Everybody learns from the same examples."""
    prior = prior_of(known)
    linear = weights.fit_weights(known, weights.Settings())
    fitted = {
        "best kinds": Policy(
            kind="weights", kinds=kinds_in(known), weights={KIND: 1.0}, temperature=SHARP
        ),
        "SFT": linear.sft,
        "SFT, sharper": linear.sharp,
        "RL": linear.rl,
        "trees": boosting.fit_trees(known, boosting.Settings()),
    }
    return {
        "random": Uniform,
        "prior per kind": partial(ByKind, prior, learns=False),
        "Thompson": partial(ByKind, prior, learns=True),
        **{name: partial(ByPolicy, policy, {}) for name, policy in fitted.items()},
        "knowing": Knowing,
    }


def compare(tables: dict[str, list[Example]], seeds: int) -> dict[str, dict[str, Runs]]:
    """The runs of every arm at the tasks of each table, by what was fitted to other families."""
    runs: dict[str, dict[str, Runs]] = {name: defaultdict(dict) for name in tables}
    examples = [each for own in tables.values() for each in own]
    for number, (known, tested) in enumerate(splits(examples, FOLDS, FOLD_SEED), 1):
        progress(f"fold {number} of {FOLDS}")
        arms = arms_from(known)
        families = {each.family for each in tested}
        for name, own in tables.items():
            for task, states in by_task(own, families).items():
                start = own_starts(find_task(task), "cpp")[0].content_hash
                for arm, make in arms.items():
                    runs[name][arm][task] = [
                        replay(states, start, make, f"{task} {seed}", PROPOSALS)
                        for seed in range(seeds)
                    ]
    return runs


def by_task(
    examples: Sequence[Example], families: Collection[str]
) -> dict[str, dict[str, Example]]:
    tasks: dict[str, dict[str, Example]] = defaultdict(dict)
    for each in examples:
        if each.family in families:
            tasks[each.task][each.program] = each
    return tasks


def interval(values: numpy.ndarray, rng: numpy.random.Generator) -> list[float]:
    """The geometric mean, with its 95% interval, of logarithms by task and run."""
    tasks, seeds = values.shape
    means = []
    for _ in range(RESAMPLES):
        drawn = values[rng.integers(0, tasks, tasks)]
        means.append(numpy.take_along_axis(drawn, rng.integers(0, seeds, drawn.shape), 1).mean())
    return [math.exp(each) for each in (values.mean(), *numpy.quantile(means, [0.025, 0.975]))]


def figures(runs: dict[str, Runs]) -> dict[str, Any]:
    rng = numpy.random.default_rng(0)
    tasks = sorted(next(iter(runs.values())))
    values = {name: numpy.array([own[task] for task in tasks]) for name, own in runs.items()}
    reached = {
        name: {str(after): interval(own[:, :, after - 1], rng) for after in SHOWN}
        for name, own in values.items()
    }
    ratios = {
        f"{one} over {other}": {
            str(after): interval((values[one] - values[other])[:, :, after - 1], rng)
            for after in SHOWN
        }
        for one, other in COMPARED
    }
    return {"tasks": tasks, "reached": reached, "ratios": ratios}


def show(found: dict[str, Any]) -> None:
    for part in ("reached", "ratios"):
        for name, own in found[part].items():
            cells = "  ".join("{:.3f} [{:.3f}, {:.3f}]".format(*own[str(n)]) for n in SHOWN)
            print(f"{name:28} {cells}")


def described(tables: dict[str, list[Example]]) -> str:
    """Where a policy comes from, for its file."""
    parts = [
        f"{sum(len(each.choices) for each in own)} judged edits at {len(own)} programs ({name})"
        for name, own in tables.items()
    ]
    return f"SFT and RL by benchmarks/choices.py on {' and '.join(parts)}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, action="append", default=[])
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--policy", type=Path, help="write the policy after RL, of all families")
    asked = parser.parse_args()
    sources = {"recorded, aarch64": recorded_states([STORE], lambda n: progress(f"{n} steps"))}
    for path in asked.table:
        states = list(Table(path).states.values())
        sources[f"judged, {states[0].parent.machine}"] = states
    tables = {
        name: examples_of(own, lambda n: progress(f"{n} programs")) for name, own in sources.items()
    }
    families = {each.family for own in tables.values() for each in own}
    report: dict[str, Any] = {"folds": deal(families, FOLDS, FOLD_SEED), "seeds": asked.seeds}
    for name, runs in compare(tables, asked.seeds).items():
        found, own = figures(runs), tables[name]
        counts = {"programs": len(own), "options": sum(len(each.choices) for each in own)}
        report[name] = counts | found
        print(f"\n{name}: {counts}, {len(found['tasks'])} tasks; after {SHOWN} proposals")
        show(found)
    if asked.policy is not None:
        examples = [each for own in tables.values() for each in own]
        policy = weights.fit_weights(examples, weights.Settings(), about=described(tables)).rl
        asked.policy.write_text(policy.model_dump_json(exclude={"trees"}, indent=0) + "\n")
    if asked.json is not None:
        asked.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
