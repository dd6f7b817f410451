"""`kernel-smith bench list SUITE...`: the problems, without working on them."""

from __future__ import annotations

import shlex
from collections import Counter
from typing import Annotated

import typer

from kernel_smith.cli.bench_options import Categories, Levels, Problems, Sample, SampleSeed, Suites
from kernel_smith.cli.output import console, print_columns, print_json, print_next
from kernel_smith.records.counts import counted


def list_problems(
    suites: Suites,
    level: Levels = None,
    category: Categories = None,
    problem: Problems = None,
    sample: Sample = None,
    sample_seed: SampleSeed = 0,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """List the problems of suites: name, level and category.

    What cannot be read is named with the reason.
    """
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
    print_columns(
        [
            ("problem", "level", "category"),
            *((each.name, each.level, each.category) for each in found),
        ]
    )
    for each in found:
        if each.why_broken:
            console.print(f"broken: {each.why_broken}")
    counts = Counter(each.category for each in found)
    shown = "; ".join(f"{name} {count}" for name, count in counts.most_common())
    categories = counted(len(counts), "category", "categories")
    console.print(f"{counted(len(found), 'problem')} in {categories}: {shown}")
    words = shlex.join(["kernel-smith", "bench", *suites])
    print_next(f"{words} --method greedy --evaluations 10", "solve them")
