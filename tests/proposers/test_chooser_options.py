"""What can be chosen: the mutator's own programs, all of them or told how many more, by a seed."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from timed_evaluations import evaluated

from kernel_smith.proposers.base import NothingToPropose
from kernel_smith.proposers.chooser import Menu, menu_at, state_text
from kernel_smith.proposers.chooser.options import LABELS, MOST
from kernel_smith.proposers.mutator import EDITS, Mutator
from kernel_smith.proposers.mutator.edit import Machine
from kernel_smith.proposers.mutator.sites import all_sites
from kernel_smith.records import Candidate, Elite, Plan, Request, Task
from kernel_smith.records.prose import headline
from kernel_smith.runs.config import own_starts
from kernel_smith.tasks import builtin_tasks

ALONE = Machine(cores=1)


@cache
def starts() -> tuple[Candidate, ...]:
    return tuple(start for task in builtin_tasks("cpu") for start in own_starts(task, "cpp"))


def loops(count: int) -> Candidate:
    """A program with as many functions, and a loop in each."""
    functions = "\n".join(
        f'extern "C" void f{n}(const float* x, float* y, long n) '
        "{ for (long i = 0; i < n; ++i) y[i] = x[i] * 2.0f; }"
        for n in range(count)
    )
    head = "from kernel_smith.inline import cpp"
    return Candidate(source=f'{head}\n\nSOURCE = r"""\n{functions}\n"""\nkernels = cpp(SOURCE)\n')


def made_by_the_mutator(parent: Candidate, edit: str) -> set[str]:
    """All that it makes of a parent by one kind of edit."""
    mutator, found = Mutator(), set()
    elite = Elite(candidate=parent, evaluation=evaluated(parent, 1.0))
    request = Request(
        task=Task(name="t", source=""),
        backend=parent.backend,
        parent=elite,
        context=(Plan(text=edit, edit=edit),),
    )
    while True:
        try:
            found.add(mutator.propose(request).candidate.source)
        except NothingToPropose:
            return found


@pytest.mark.parametrize("start", starts()[::5], ids=lambda start: start.content_hash[:8])
def test_options_are_the_programs_that_the_mutator_makes(start: Candidate) -> None:
    menu = menu_at(start, ALONE)
    assert not menu.left_out
    for edit in {option.edit.name for option in menu.options}:
        ours = {option.program.source for option in menu.options if option.edit.name == edit}
        assert ours == made_by_the_mutator(start, edit)


@given(st.integers(1, 12), st.integers(0, 5), st.integers(1, MOST))
@settings(max_examples=25, deadline=None)
def test_no_option_is_lost_without_a_word(count: int, seed: int, most: int) -> None:
    program = loops(count)
    menu = menu_at(program, ALONE, seed=seed, most=most)
    sites = all_sites(EDITS, "cpp", program.source, ALONE)
    assert len(menu.options) <= most
    assert len(menu.options) + menu.left_out + menu.useless == sum(map(len, sites.values()))
    assert [option.label for option in menu.options] == list(LABELS[: len(menu.options)])
    assert len({option.signature for option in menu.options}) == len(menu.options)
    if most >= len(sites) and not menu.useless:
        assert {option.edit.name for option in menu.options} == set(sites)


@given(st.integers(0, 1000))
@settings(max_examples=10, deadline=None)
def test_a_seed_decides_the_order_and_nothing_else(seed: int) -> None:
    program = loops(4)
    menu, again, other = (menu_at(program, ALONE, seed=each) for each in (seed, seed, seed + 1))
    assert menu == again
    assert menu.options != other.options
    assert signatures(menu) == signatures(other)


def test_the_order_does_not_depend_on_the_hash_seed() -> None:
    script = (
        "from kernel_smith.proposers.chooser import menu_at;"
        "from kernel_smith.records import Candidate;"
        f"menu = menu_at(Candidate(source={loops(9).source!r}), seed=3);"
        "print([option.signature for option in menu.options])"
    )
    outputs = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(outputs) == 1


def test_a_state_names_its_verdict_every_option_and_how_many_more_there_are() -> None:
    program = loops(12)
    menu = menu_at(program, ALONE)
    text = state_text(menu, headline(evaluated(program, 0.5)))
    assert program.source.strip() in text
    assert "Verdict: ok: correct, 0.500" in text
    assert len(menu.options) == MOST
    assert all(f"\n{option.label}: {option}\n" in text for option in menu.options)
    assert menu.left_out > 0
    assert f"({menu.left_out} more are not listed.)" in text


def test_a_program_that_cannot_be_read_offers_nothing() -> None:
    assert menu_at(Candidate(source="not a ( program")).options == ()


def signatures(menu: Menu) -> set[str]:
    return {option.signature for option in menu.options}
