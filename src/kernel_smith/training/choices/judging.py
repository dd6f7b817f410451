"""Having every option at a program judged, each timed beside the program itself."""

from __future__ import annotations

from collections.abc import Callable

from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.records import Candidate, Evaluation, Options, Sampling, StepGain, Task
from kernel_smith.records.gains import timed_beside
from kernel_smith.training.choices.rows import judged_row, parent_row
from kernel_smith.training.choices.table import State, Table

# Long enough to tell a gain of a tenth, and short, because there are thousands of options.
QUICK = Options(
    seeds=1,
    profile=False,
    time_twins=False,
    sampling=Sampling(target=0.03, unstable_above=100, min_rounds=10, max_seconds=1.0),
)


def judge_options(
    engine: Evaluator,
    task: Task,
    candidate: Candidate,
    table: Table,
    *,
    options: Options = QUICK,
    is_over: Callable[[], bool] = lambda: False,
    progress: Callable[[str], None] = lambda what: None,
) -> State | None:
    """Complete a program's part of the table. None for a program that cannot be timed itself.

    What the table holds already is not judged again.
    """
    key = task.name, candidate.content_hash
    if key not in table.states:
        parent = parent_row(task, candidate, engine.submit(task, candidate, options).result())
        if parent is None:
            return None
        table.append(parent)
    state = table.states[key]
    menu = state.menu()
    for number, option in enumerate(menu.options, 1):
        if option.program.content_hash in state.judged:
            continue
        if is_over():
            break
        progress(f"{task.name}: {number} of {len(menu.options)} options")
        evaluation = engine.submit(task, option.program, options, beside=candidate).result()
        gain = _gain(evaluation, candidate)
        table.append(judged_row(state.parent, str(option), evaluation, gain))
    return state


def _gain(evaluation: Evaluation, parent: Candidate) -> StepGain | None:
    overall = timed_beside(evaluation, parent.content_hash)
    if overall is None or evaluation.beside is None or not evaluation.ok:
        return None
    return StepGain(overall=overall, workloads=evaluation.beside.workloads, side_by_side=True)
