"""A scorer for verl: what an answer is worth, asked of an evaluation service.

In verl: `custom_reward_function.path=.../verl_reward.py` and
`custom_reward_function.name=compute_score`, with `KERNEL_SMITH_ENGINE=http://HOST:8300` in the
environment (and `KERNEL_SMITH_TOKEN`, where the service wants one). The reward is the parent's
time over the program's, measured side by side; of a first program, its speedup. Nothing is given
for an answer without a program, or for one that is wrong or cheats.
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
from kernel_smith.evaluation.rewards import rewards
from kernel_smith.proposers.model.parse import Refusal, parse_answer
from kernel_smith.records import Candidate, RewardPair, Task

ENGINE_VARIABLE = "KERNEL_SMITH_ENGINE"

_UNKNOWN = 0.0  # verl wants a number, also where the machine was at fault


def compute_score(
    data_source: str,
    solution_str: str,
    ground_truth: str,
    extra_info: Mapping[str, Any] | None = None,
) -> float:
    """The reward of one answer to a row of the formats `verl` and `paper-rl`."""
    about = extra_info or {}
    parent = about.get("parent_code") or None
    answer = parse_answer(solution_str, parent or "")
    if isinstance(answer, Refusal):
        return 0.0
    backend = about.get("backend") or "triton"
    pair = RewardPair(
        task=0,
        parent=Candidate(backend=backend, source=parent) if parent else None,
        candidate=Candidate(backend=backend, source=answer.source),
    )
    engine = _engine(os.environ.get(ENGINE_VARIABLE, ""), os.getpid())
    value = rewards(engine, [_task(ground_truth, about)], [pair])[0].value
    return value if value is not None else _UNKNOWN


def _task(ground_truth: str, about: Mapping[str, Any]) -> Task:
    """Rows that others have published carry the reference alone."""
    if about.get("task"):
        return Task.model_validate_json(about["task"])
    return Task(name="reference", source=json.loads(ground_truth)["reference_code"])


@lru_cache(maxsize=1)
def _engine(address: str, process: int) -> Engine:
    """One for each process: a connection does not survive a fork."""
    if not address:
        raise BadInput(
            f"{ENGINE_VARIABLE} is not set: nobody can evaluate answers",
            hint=f"start one with `kernel-smith serve`, and set {ENGINE_VARIABLE} to its address",
        )
    return ExitStack().enter_context(open_engine(address))
