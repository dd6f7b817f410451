"""What is it worth to know, from other tasks, which edits pay?

    python benchmarks/edit_priors.py [--json results.json]

From the recorded steps of the mutator in `results/training/steps.sqlite`: at every parent on which
several kinds of edits were tried, one is drawn as the mutator draws its first, and the certain
gains that were recorded for it are averaged. What is expected of an edit comes from the other
families of tasks alone. Beside it: any edit, promises alone, and the best that was recorded.
"""

from __future__ import annotations

import argparse
import json
import math
import random
from collections import defaultdict
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from common import progress
from moves import STORE, move_of

from kernel_smith.proposers.mutator.priors import PROMISES, Expected, learnt_from
from kernel_smith.records import StepGain
from kernel_smith.tasks import find_task
from kernel_smith.trajectories.steps import read_steps

FEWEST_KINDS = 3
DRAWS = 100
RESAMPLES = 2000
# As they were before records took their place, for edits that are not in `PROMISES` any more.
FORMER_PROMISES = PROMISES | {
    "vector-exponential": 4.0,
    "single-precision": 3.0,
    "simd-loop": 2.0,
    "split-accumulator": 2.0,
    "interchange-loops": 2.0,
    "jam-iterations": 2.0,
    "narrow-range": 2.0,
    "split-by-quotient": 2.0,
}

Choose = Callable[[list[str], random.Random], str]


class Step(NamedTuple):
    family: str
    parent: str
    edit: str
    gain: StepGain | None

    @property
    def certain(self) -> float:
        """The logarithm of what it surely gained; nothing is kept that lost."""
        return 0.0 if self.gain is None else max(math.log(self.gain.overall.certain), 0.0)


def single_edits(store: Path) -> list[Step]:
    family_of = cache(lambda name: find_task(name).family)
    found = []
    for step in read_steps([store]):
        if step.parent is not None and step.proposer == "mutator" and "; then " not in step.summary:
            parent = step.parent.candidate.content_hash
            edit = step.summary.partition(":")[0]
            found.append(Step(family_of(step.task.name), parent, edit, step.gain))
            progress(f"{len(found)} steps")
    return found


def drawn_from(expected: Callable[[str], Expected]) -> Choose:
    def choose(kinds: list[str], rng: random.Random) -> str:
        drawn = {kind: rng.betavariate(*expected(kind)) for kind in sorted(kinds)}
        return max(drawn, key=lambda kind: drawn[kind])

    return choose


def learnt_without(family: str, steps: Sequence[Step]) -> Choose:
    gains = defaultdict(list)
    for step in steps:
        if step.family != family:
            gains[step.edit].append(step.gain)
    learnt = learnt_from(move_of(edit, tries) for edit, tries in gains.items())
    return drawn_from(lambda edit: learnt.get(edit, Expected()))


def gains_at(tried: dict[str, list[float]], choose: Choose, rng: random.Random) -> float:
    kinds = [choose(list(tried), rng) for _ in range(DRAWS)]
    return sum(sum(tried[kind]) / len(tried[kind]) for kind in kinds) / DRAWS


def compare(steps: Sequence[Step]) -> dict[str, list[float]]:
    """Mean logarithms of gains, a figure for every parent, by how edits are chosen."""
    parents: defaultdict[tuple[str, str], defaultdict[str, list[float]]]
    parents = defaultdict(lambda: defaultdict(list))
    for step in steps:
        parents[step.family, step.parent][step.edit].append(step.certain)
    promised = drawn_from(lambda edit: Expected(paid=FORMER_PROMISES.get(edit, 1.0)))
    learnt = {family: learnt_without(family, steps) for family, _ in parents}
    rng, found = random.Random(0), defaultdict(list)
    for (family, _), tried in parents.items():
        if len(tried) >= FEWEST_KINDS:
            found["any edit"].append(gains_at(tried, lambda kinds, r: r.choice(kinds), rng))
            found["by promises"].append(gains_at(tried, promised, rng))
            found["by records of other families"].append(gains_at(tried, learnt[family], rng))
            found["the best recorded"].append(max(max(gains) for gains in tried.values()))
    return found


def interval(values: Sequence[float]) -> tuple[float, float]:
    """95%, by drawing the parents anew."""
    rng = random.Random(0)
    means = sorted(sum(rng.choices(values, k=len(values))) / len(values) for _ in range(RESAMPLES))
    return means[RESAMPLES // 40], means[-RESAMPLES // 40]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", type=Path)
    asked = parser.parse_args()
    found = compare(single_edits(STORE))
    report: dict[str, Any] = {"parents": len(found["any edit"]), "gain": {}}
    for name, values in found.items():
        low, high = interval(values)
        report["gain"][name] = [math.exp(x) for x in (sum(values) / len(values), low, high)]
        print("{}: {:.3f} [{:.3f}, {:.3f}]".format(name, *report["gain"][name]))
    pairs = zip(found["by records of other families"], found["by promises"], strict=True)
    better = [new - old for new, old in pairs]
    report["records over promises"] = [
        math.exp(x) for x in (sum(better) / len(better), *interval(better))
    ]
    print("records over promises: {:.3f} [{:.3f}, {:.3f}]".format(*report["records over promises"]))
    if asked.json is not None:
        asked.json.write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
