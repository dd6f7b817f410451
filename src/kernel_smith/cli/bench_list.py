"""`kernel-smith bench list SUITE...`: the problems, without working on them."""

from __future__ import annotations

from collections import Counter
from typing import Annotated

import typer

from kernel_smith.cli.bench_options import Categories, Levels, Problems, Sample, SampleSeed, Suites
from kernel_smith.cli.output import console, print_json


def list_problems(
    suites: Suites,
    level: Levels = None,
    category: Categories = None,
    problem: Problems = None,
    sample: Sample = None,
    sample_seed: SampleSeed = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the problems of suites: name, level, category, and whether the file can be read."""
    from kernel_smith.bench.suites import Selection, find_problems

    selection = Selection(
        tuple(level or ()), tuple(category or ()), tuple(problem or ()), sample, sample_seed
    )
    found = find_problems(suites, selection)
    if json:
        rows = [
            {
                "problem": each.name,
                "suite": each.suite,
                "level": each.level,
                "category": each.category,
                "precision": each.precision.value,
                "why_broken": each.why_broken,
            }
            for each in found
        ]
        print_json({"problems": rows})
        return
    for each in found:
        name = each.name if len(each.name) <= 44 else f"{each.name[:41]}..."
        console.print(f"{name:<45} {each.level:<8} {each.category}", markup=False)
        if each.why_broken:
            console.print(f"  broken: {each.why_broken}", markup=False)
    counts = Counter(each.category for each in found)
    shown = ", ".join(f"{name} {count}" for name, count in counts.most_common())
    console.print(f"{len(found)} problems in {len(counts)} categories: {shown}", markup=False)
