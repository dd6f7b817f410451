"""What a run without any timing leaves: every correct program as a file, to be timed elsewhere."""

from __future__ import annotations

import shlex
from json import dumps
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_smith.cli.candidates import write_candidate
from kernel_smith.cli.output import console, print_next
from kernel_smith.cli.task_words import words_of
from kernel_smith.records import Task

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState, Step


def is_untimed(state: RunState) -> bool:
    """Has the run gone on although nothing was timed?"""
    return state.best is not None and state.best.evaluation.untimed


def default_folder(task: Task, backend: str) -> Path:
    return Path(f"{task.name}_{backend}_variants")


def show_variants(state: RunState, folder: Path, *, as_json: bool) -> bool:
    """Write them, and say what to do with them; is one of them a change of another?"""
    correct = [step for step in state.steps.values() if step.evaluation and step.evaluation.ok]
    for step in correct:
        write_candidate(folder / _file_name(step), step.proposal.candidate.source)
    changed = any(step.parent is not None for step in correct)
    evaluated = state.funnel["evaluated"]
    if as_json:
        print(dumps({"run": state.run, "variants": str(folder), "correct": len(correct)}))
        return changed
    shown = f"{len(correct)} of {evaluated} programs are correct as far as can be checked here."
    console.print(f"{shown} None was timed. They are in {folder}.")
    backend, pattern = state.config.backend, f"{shlex.quote(str(folder))}/*.py"
    print_next(
        f"kernel-smith optimize {shlex.join(words_of(state.task))} --backend {backend} "
        f"$(printf -- '--start %s ' {pattern})",
        "where the GPU is: go on from all of them",
    )
    return changed


def _file_name(step: Step) -> str:
    return f"{step.number:04d}_{step.proposal.proposer}.py"
