"""Rewards for a batch of steps in one call: what a trainer of models asks for.

Each step is a job like any other, so asking again with the same body goes on with the same jobs.
"""

from __future__ import annotations

import asyncio
from typing import Annotated, Self

from fastapi import APIRouter, Query, Request, Response
from pydantic import Field, model_validator

from kernel_smith.evaluation.service import api_schema
from kernel_smith.evaluation.service.admission import Asking
from kernel_smith.evaluation.service.bodies import MAX_BATCH, read_body
from kernel_smith.evaluation.service.intake import refuse_while_draining, take_in
from kernel_smith.evaluation.service.parts import Shared
from kernel_smith.evaluation.service.waiting import wait_for
from kernel_smith.records import (
    Job,
    JobRequest,
    JobState,
    Options,
    Reward,
    RewardPair,
    RewardRule,
    Task,
    reward_of,
)
from kernel_smith.records.base import Record

_LONGEST_WAIT = 60.0

router = APIRouter(prefix="/v1")


class RewardsRequest(Record):
    tasks: tuple[Task, ...] = Field(min_length=1, max_length=MAX_BATCH)
    pairs: tuple[RewardPair, ...] = Field(min_length=1, max_length=MAX_BATCH)
    options: Options = Options()
    rule: RewardRule = RewardRule()
    priority: int = Field(default=0, ge=-10, le=10)

    @model_validator(mode="after")
    def _tasks_exist(self) -> Self:
        wrong = next((pair.task for pair in self.pairs if pair.task >= len(self.tasks)), None)
        if wrong is not None:
            raise ValueError(f"a pair names task {wrong}, but {len(self.tasks)} were sent")
        return self


class RewardedJob(Record):
    job: str
    state: JobState
    reward: Reward | None = Field(description="null while the job has not ended")


class RewardsAnswer(Record):
    pending: int = Field(description="if not 0: send the same again, and wait for the rest")
    rewards: tuple[RewardedJob, ...] = Field(description="in the order of the pairs")


@router.post(
    "/rewards",
    openapi_extra=api_schema.body_of(RewardsRequest),
    responses=api_schema.answers(RewardsAnswer, 200),
)
async def ask_for_rewards(
    request: Request,
    client: Asking,
    parts: Shared,
    wait: Annotated[float, Query(ge=0, le=_LONGEST_WAIT, allow_inf_nan=False)] = _LONGEST_WAIT,
) -> Response:
    """The rewards of these steps, once all have ended or the seconds are over."""
    refuse_while_draining(parts)
    asked = await read_body(request, RewardsRequest, parts.max_body)
    jobs = await take_in(parts, client, [_request(asked, pair) for pair in asked.pairs])
    until = asyncio.get_running_loop().time() + wait
    ended = [await wait_for(parts, client.name, job.id, until) for job in jobs]
    rewarded = tuple(
        RewardedJob(job=job.id, state=job.state, reward=_reward(asked, pair, job))
        for pair, job in zip(asked.pairs, ended, strict=True)
    )
    pending = sum(not job.state.final for job in ended)
    answer = RewardsAnswer(pending=pending, rewards=rewarded)
    return Response(answer.model_dump_json(), media_type="application/json")


def _request(asked: RewardsRequest, pair: RewardPair) -> JobRequest:
    return JobRequest(
        task=asked.tasks[pair.task],
        candidate=pair.candidate,
        beside=pair.parent,
        options=asked.options,
        priority=asked.priority,
    )


def _reward(asked: RewardsRequest, pair: RewardPair, job: Job) -> Reward | None:
    if job.evaluation is not None:
        return reward_of(job.evaluation, asked.rule, has_parent=pair.parent is not None)
    if not job.state.final:
        return None
    why = job.error.what if job.error is not None else "the job was cancelled"
    return Reward(value=None, message=why)
