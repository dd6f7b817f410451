"""Does it pay to learn which edit to choose? Policies over the same options, on families held out.

    python benchmarks/choices.py [--table TABLE.jsonl] [--odds odds.jsonl] [--json results.json]
    python benchmarks/choices.py [--table TABLE.jsonl] --policy policy.json [--hold-out FAMILY ...]

The options are those of recorded runs (`results/training/steps.sqlite`) and of the tables that
`choices_table.py` writes. Families are dealt into folds by a fixed seed; what is compared on a fold
was fitted without its families. Every task of a table has `--seeds` runs of 8 proposals with each
arm, by evaluations that are known already; beside it stands what one choice at any of the task's
programs comes to. Intervals are from drawing tasks, and runs of each, anew. `--odds` adds arms that
somebody else has asked for: language models, by `choices_model.py`. `--no-recorded` leaves recorded
runs out. `--policy` compares nothing: it writes the policy after RL, fitted to all families but
those that `--hold-out` names.
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
from collections import defaultdict
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
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
from kernel_smith.training.choices.replay import (
    Arm,
    ByKind,
    ByOdds,
    ByPolicy,
    Knowing,
    Uniform,
    one_choice,
    replay,
)
from kernel_smith.training.choices.table import Table

FOLDS, FOLD_SEED = 6, 26
PROPOSALS = 8
SHOWN = (1, 2, 4, 8)
ONCE = "one choice at any program"
RESAMPLES = 2000
SHARP = 0.25  # of an arm that knows of kinds alone, and hardly hesitates
COMPARED = (
    ("RL", "SFT"),
    ("RL", "SFT, sharper"),
    ("RL", "prior per kind"),
    ("RL, wide", "SFT"),
    ("RL, wide", "prior per kind"),
    ("RL, wide", "RL"),
    ("RL trees", "SFT"),
    ("RL trees", "prior per kind"),
    ("RL trees", "RL"),
    ("trees", "prior per kind"),
    ("trees", "Thompson"),
    ("trees", "RL"),
    ("RL", "best kinds"),
    ("trees", "best kinds"),
    ("best kinds", "prior per kind"),
    ("Thompson", "random"),
    ("prior per kind", "random"),
    ("model SFT", "model as it is"),
    ("model RL", "model SFT"),
    ("model RL", "prior per kind"),
    ("model RL", "RL"),
    ("model as it is", "random"),
)

Make = Callable[[], Arm]
Runs = dict[str, list[list[float]]]
"""By task: for each seed the logarithms of what was reached after each proposal."""
Choices = dict[str, float]
"""By task: the mean logarithm of what a first choice gained, over its programs."""


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
        "RL, wide": weights.fit_weights(known, weights.Settings(wide=True)).rl,
        "RL trees": boosting.fit_policy_trees(known, boosting.RL),
        "trees": boosting.fit_trees(known, boosting.Settings()),
    }
    return {
        "random": Uniform,
        "prior per kind": partial(ByKind, prior, learns=False),
        "Thompson": partial(ByKind, prior, learns=True),
        **{name: partial(ByPolicy, policy, {}) for name, policy in fitted.items()},
        "knowing": Knowing,
    }


def arms_said(path: Path) -> dict[str, Make]:
    """Arms whose odds were written down: each was asked about families that it had not seen."""
    said: dict[str, dict[tuple[str, str], dict[str, float]]] = defaultdict(dict)
    for line in path.read_text().splitlines():
        row = json.loads(line)
        said[row["arm"]][row["machine"], row["program"]] = row["odds"]
    return {arm: partial(ByOdds, odds) for arm, odds in said.items()}


@dataclass
class Seen:
    """Of one table, by arm."""

    runs: dict[str, Runs] = field(default_factory=lambda: defaultdict(dict))
    choices: dict[str, Choices] = field(default_factory=lambda: defaultdict(dict))


def compare(
    tables: dict[str, list[Example]], seeds: int, others: dict[str, Make]
) -> dict[str, Seen]:
    """What every arm does at the tasks of each table, by what was fitted to other families."""
    seen = {name: Seen() for name in tables}
    examples = [each for own in tables.values() for each in own]
    for number, (known, tested) in enumerate(splits(examples, FOLDS, FOLD_SEED), 1):
        progress(f"fold {number} of {FOLDS}")
        arms = arms_from(known) | others
        families = {each.family for each in tested}
        for name, own in tables.items():
            for task, states in by_task(own, families).items():
                start = own_starts(find_task(task), "cpp")[0].content_hash
                for arm, make in arms.items():
                    seen[name].runs[arm][task] = [
                        replay(states, start, make, f"{task} {seed}", PROPOSALS)
                        for seed in range(seeds)
                    ]
                    at_each = (
                        one_choice(state, make, program, seeds) for program, state in states.items()
                    )
                    seen[name].choices[arm][task] = statistics.mean(at_each)
    return seen


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


def figures(seen: Seen) -> dict[str, Any]:
    rng, runs = numpy.random.default_rng(0), seen.runs
    tasks = sorted(next(iter(runs.values())))
    values = {name: numpy.array([own[task] for task in tasks]) for name, own in runs.items()}
    once = {
        name: numpy.array([[own[task]] for task in tasks]) for name, own in seen.choices.items()
    }

    def told(name: str, other: str | None = None) -> dict[str, list[float]]:
        """Of an arm, or of its ratio to another."""
        run, choice = values[name], once[name]
        if other is not None:
            run, choice = run - values[other], choice - once[other]
        after = {str(n): interval(run[:, :, n - 1], rng) for n in SHOWN}
        return {ONCE: interval(choice, rng)} | after

    pairs = [(one, other) for one, other in COMPARED if one in values and other in values]
    return {
        "tasks": tasks,
        "reached": {name: told(name) for name in values},
        "ratios": {f"{one} over {other}": told(one, other) for one, other in pairs},
    }


def show(found: dict[str, Any]) -> None:
    for part in ("reached", "ratios"):
        for name, own in found[part].items():
            cells = "  ".join("{:.3f} [{:.3f}, {:.3f}]".format(*each) for each in own.values())
            print(f"{name:28} {cells}")


def write_policy(path: Path, tables: dict[str, list[Example]], held_out: Collection[str]) -> None:
    known = {
        name: [each for each in own if each.family not in held_out] for name, own in tables.items()
    }
    about = described(known) + (f", without {', '.join(sorted(held_out))}" if held_out else "")
    examples = [each for own in known.values() for each in own]
    policy = weights.fit_weights(examples, weights.Settings(), about=about).rl
    path.write_text(policy.model_dump_json(exclude={"trees"}, indent=0) + "\n")


def described(tables: dict[str, list[Example]]) -> str:
    """Where a policy comes from, for its file."""
    parts = [
        f"{sum(len(each.choices) for each in own)} edits at {len(own)} programs ({name})"
        for name, own in tables.items()
    ]
    return f"SFT and RL by benchmarks/choices.py on {' and '.join(parts)}"


def read_tables(paths: Sequence[Path], *, recorded: bool = True) -> dict[str, list[Example]]:
    sources = {}
    if recorded:
        steps = recorded_states([STORE], lambda count: progress(f"{count} steps"))
        sources["recorded, aarch64"] = steps
    for path in paths:
        states = list(Table(path).states.values())
        sources[f"{path.stem}, {states[0].parent.machine}"] = states
    return {
        name: examples_of(own, lambda n: progress(f"{n} programs")) for name, own in sources.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--table", type=Path, action="append", default=[])
    parser.add_argument("--no-recorded", action="store_true", help="read the tables alone")
    parser.add_argument("--odds", type=Path, help="what `choices_model.py` wrote: more arms")
    parser.add_argument("--seeds", type=int, default=32)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--policy", type=Path, help="write the policy after RL, of all families")
    parser.add_argument("--hold-out", action="append", default=[], help="but for this family")
    asked = parser.parse_args()
    if asked.no_recorded and not asked.table:
        parser.error("nothing is left to compare on: name a --table")
    tables = read_tables(asked.table, recorded=not asked.no_recorded)
    families = {each.family for own in tables.values() for each in own}
    if unknown := sorted(set(asked.hold_out) - families):
        parser.error(f"no program is of the family {unknown[0]}: {', '.join(sorted(families))}")
    if asked.policy is not None:
        write_policy(asked.policy, tables, asked.hold_out)
        return
    others = arms_said(asked.odds) if asked.odds is not None else {}
    report: dict[str, Any] = {"folds": deal(families, FOLDS, FOLD_SEED), "seeds": asked.seeds}
    for name, seen in compare(tables, asked.seeds, others).items():
        found, own = figures(seen), tables[name]
        counts = {"programs": len(own), "options": sum(len(each.choices) for each in own)}
        report[name] = counts | found
        print(f"\n{name}: {counts}, {len(found['tasks'])} tasks")
        print(f"{ONCE}; then runs, after {SHOWN} proposals")
        show(found)
    if asked.json is not None:
        asked.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
