"""A scorer for verl: what an answer is worth, asked of an evaluation service.

In verl: `custom_reward_function.path=.../verl_reward.py` and
`custom_reward_function.name=compute_score`, with `KERNEL_SMITH_ENGINE=http://HOST:8300` in the
environment (and `KERNEL_SMITH_TOKEN`, where the service wants one). The reward is that of
`kernel-smith train rl` with its default settings: the certain gain over the parent less 1.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from functools import lru_cache
from typing import Any

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.base import Engine
from kernel_smith.evaluation.engines.choose import open_engine
from kernel_smith.records import Candidate, Task
from kernel_smith.training.answers import Question, read_answer
from kernel_smith.training.config import RewardSettings
from kernel_smith.training.rewards import grade

ENGINE_VARIABLE = "KERNEL_SMITH_ENGINE"

_UNKNOWN = 0.0  # verl wants a number, also where the machine was at fault


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
) -> float:
    """The reward of one answer to a row of the formats `verl` and `paper-rl`."""
    answer = read_answer(_question(ground_truth, extra_info or {}), solution_str)
    evaluation = None
    if answer.program is not None:
        engine = _engine(os.environ.get(ENGINE_VARIABLE, ""), os.getpid())
        question = answer.question
        asked = engine.submit(question.task, answer.program, beside=question.parent)
        evaluation = asked.result()
    reward = grade(answer, evaluation, RewardSettings()).reward
    return reward if reward is not None else _UNKNOWN


def _question(ground_truth: str, about: Mapping[str, Any]) -> Question:
    """Rows that others have published carry the reference alone."""
    backend = about.get("backend") or "triton"
    parent = about.get("parent_code") or None
    if about.get("task"):
        task = Task.model_validate_json(about["task"])
    else:
        task = Task(name="reference", source=json.loads(ground_truth)["reference_code"])
    return Question(
        id=str(about.get("id", "")),
        task=task,
        backend=backend,
        parent=Candidate(backend=backend, source=parent) if parent else None,
    )


@lru_cache(maxsize=1)
def _engine(address: str, process: int) -> Engine:
    """One for each process: a connection does not survive a fork."""
    if not address:
        raise BadInput(
            f"{ENGINE_VARIABLE} is not set: nobody can evaluate answers",
            hint=f"start one with `kernel-smith serve`, and set {ENGINE_VARIABLE} to its address",
        )
    return ExitStack().enter_context(open_engine(address))
