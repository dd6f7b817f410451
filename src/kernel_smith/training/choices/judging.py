"""Finding out what every option at a program is worth.

All of them are edits of a program that was accepted, so they are compiled together and timed in one
process (a sweep). What that shows of some is confirmed by the judge, or every option is judged,
each timed beside the program itself: that takes several times as long.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Collection

from kernel_smith.evaluation.engines.base import Evaluator, Sweeper
from kernel_smith.records import Candidate, Evaluation, Options, Sampling, StepGain, Task
from kernel_smith.records.gains import timed_beside
from kernel_smith.training.choices.rows import SweptChanges, judged_row, parent_row
from kernel_smith.training.choices.table import State, Table

# Long enough to tell a gain of a tenth, and short, because there are thousands of options.
QUICK = Options(
    seeds=1,
    profile=False,
    time_twins=False,
    sampling=Sampling(target=0.03, unstable_above=100, min_rounds=10, max_seconds=1.0),
)
# How fast a parent is beside eager is but one of many numbers that a choice is made from.
GLANCE = QUICK.model_copy(
    update={"sampling": Sampling(target=0.1, unstable_above=100, min_rounds=6, max_seconds=0.4)}
)
SWEPT = QUICK.model_copy(update={"sampling": Sampling(target=0.015)})
_SWEEP_SECONDS, _SECONDS_PER_OPTION = 30.0, 5.0  # at most: a busy machine compiles slowly
_BEST, _SAMPLED = 1, 0.04  # of a program's changes


def open_state(
    engine: Evaluator,
    task: Task,
    candidate: Candidate,
    table: Table,
    options: Options = GLANCE,
    evaluation: Evaluation | None = None,
) -> State | None:
    """Return a program's part of the table. None for one that cannot be timed itself.

    `evaluation`: the program's, if it is known.
    """
    key = task.name, candidate.content_hash
    if key not in table.states:
        evaluation = evaluation or engine.submit(task, candidate, options).result()
        parent = parent_row(task, candidate, evaluation)
        if parent is None:
            return None
        table.append(parent)
    return table.states[key]


def sweep_options(
    engine: Sweeper, task: Task, state: State, table: Table, options: Options = SWEPT
) -> str:
    """Sweep the options of which the table says nothing yet. Returns what went wrong, if it did."""
    known = state.known
    left = {
        program: each
        for each in state.menu().options
        if (program := each.program.content_hash) not in known
    }
    if not left:
        return ""
    seconds = _SWEEP_SECONDS + _SECONDS_PER_OPTION * len(left)
    sources = [each.program.source for each in left.values()]
    asked = engine.sweep(task, state.candidate, sources, options, seconds, everybody=True)
    sweep = asked.result()
    if sweep.problem:
        return sweep.problem
    changes = {program: str(each) for program, each in left.items()}
    table.append(SweptChanges.of(state.parent, changes, sweep))
    return ""


def to_confirm(state: State) -> set[str]:
    """Return what the judge should look at again, by hash: the swept changes that look best, which
    are flattered by having been picked, and some others, which say how far sweeps can be trusted.
    """
    gained = sorted(state.swept.values(), key=lambda row: row.reward, reverse=True)
    best = [row.program for row in gained[:_BEST] if row.reward > 0]
    return {name for name in state.swept if random.Random(name).random() < _SAMPLED} | {*best}


def judge_options(
    engine: Evaluator,
    task: Task,
    state: State,
    table: Table,
    *,
    options: Options = QUICK,
    only: Collection[str] | None = None,
    is_over: Callable[[], bool] = lambda: False,
    progress: Callable[[str], None] = lambda what: None,
) -> dict[str, Evaluation]:
    """Have options judged that were not yet, and return their evaluations by hash.

    `only`: those with these hashes, and no others.
    """
    wanted = [
        each
        for each in state.menu().options
        if each.program.content_hash not in state.judged
        and (only is None or each.program.content_hash in only)
    ]
    parent, made = state.candidate, {}
    for number, option in enumerate(wanted, 1):
        if is_over():
            break
        progress(f"{task.name}: {number} of {len(wanted)} options judged")
        evaluation = engine.submit(task, option.program, options, beside=parent).result()
        gain = _gain(evaluation, parent)
        table.append(judged_row(state.parent, str(option), evaluation, gain))
        made[option.program.content_hash] = evaluation
    return made


def _gain(evaluation: Evaluation, parent: Candidate) -> StepGain | None:
    overall = timed_beside(evaluation, parent.content_hash)
    if overall is None or evaluation.beside is None or not evaluation.ok:
        return None
    return StepGain(overall=overall, workloads=evaluation.beside.workloads, side_by_side=True)
