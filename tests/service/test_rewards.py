"""Rewards for batches of steps: the same from every engine, and over HTTP in one call."""

from __future__ import annotations

import itertools
import threading
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest
from serving import LONG, TASK, serving

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.remote import RemoteEngine
from kernel_smith.evaluation.rewards import rewards
from kernel_smith.records import Candidate, Evaluation, Reason, RewardPair, RewardRule
from kernel_smith.testing.trivial import TrivialEngine


def judge(candidate: Candidate) -> float | Reason:
    word = candidate.source.split()[1]
    return float(word) if word[0].isdigit() else Reason(word)


def program(word: object, number: int = 0) -> Candidate:
    return Candidate(source=f"# {word} {number}")


def pair(child: object, parent: object | None, number: int = 0) -> RewardPair:
    before = None if parent is None else program(parent, -1)
    return RewardPair(task=0, parent=before, candidate=program(child, number))


STEPS = [pair(3.0, 2.0), pair("wrong-values", 2.0), pair(4.0, None), pair(1.0, "crashed")]
CERTAIN = 0.99  # of a gain, which is known to within 1%
WORTH = [CERTAIN * 1.5, 0.0, CERTAIN * 4.0, None]


def body(pairs: list[RewardPair], **fields: Any) -> dict[str, Any]:
    tasks = [TASK.model_dump(mode="json")]
    return {"tasks": tasks, "pairs": [each.model_dump(mode="json") for each in pairs], **fields}


def test_an_engine_gives_rewards_in_the_order_of_the_steps() -> None:
    found = rewards(TrivialEngine(judge), [TASK], STEPS)
    assert [reward.value for reward in found] == WORTH


def test_a_service_gives_the_same_through_its_engine_and_in_one_call(tmp_path: Path) -> None:
    with serving(tmp_path, TrivialEngine(judge)) as served, RemoteEngine(served.url) as remote:
        assert [reward.value for reward in rewards(remote, [TASK], STEPS)] == WORTH
        answer = served.http.post("/v1/rewards", json=body(STEPS)).json()
    assert answer["pending"] == 0
    assert [each["reward"]["value"] for each in answer["rewards"]] == WORTH
    assert [each["state"] for each in answer["rewards"]] == ["done"] * len(STEPS)


def test_the_rule_comes_with_the_call(tmp_path: Path) -> None:
    rule = RewardRule(scale="log2", low=-3, failed=-3).model_dump(mode="json")
    with serving(tmp_path, TrivialEngine(judge)) as served:
        answer = served.http.post("/v1/rewards", json=body(STEPS[:2], rule=rule)).json()
    assert [each["reward"]["value"] for each in answer["rewards"]] == pytest.approx(
        [0.570, -3], 1e-3
    )


def test_what_has_not_ended_is_pending_and_asking_again_goes_on(tmp_path: Path) -> None:
    go = threading.Event()

    class Held(TrivialEngine):
        def _evaluate(self, *arguments: Any) -> Evaluation:
            assert go.wait(LONG)
            return super()._evaluate(*arguments)

    with serving(tmp_path, Held(judge, seconds=0.001)) as served:
        first = served.http.post("/v1/rewards", params={"wait": 0}, json=body(STEPS)).json()
        assert first["pending"] == len(STEPS)
        assert all(each["reward"] is None for each in first["rewards"])
        go.set()
        second = served.http.post("/v1/rewards", json=body(STEPS)).json()
    assert [each["job"] for each in second["rewards"]] == [each["job"] for each in first["rewards"]]
    assert [each["reward"]["value"] for each in second["rewards"]] == WORTH


def test_a_step_that_cannot_be_evaluated_has_no_reward_and_harms_no_other(tmp_path: Path) -> None:
    class Refusing(TrivialEngine):
        def submit(self, task: Any, candidate: Candidate, *rest: Any, **more: Any) -> Future[Any]:
            if candidate == program(7.0):
                failed: Future[Evaluation] = Future()
                failed.set_exception(BadInput("no such thing", hint="none"))
                return failed
            return super().submit(task, candidate, *rest, **more)

    steps = [pair(7.0, 2.0), pair(3.0, 2.0)]
    assert [reward.value for reward in rewards(Refusing(judge), [TASK], steps)] == [
        None,
        CERTAIN * 1.5,
    ]
    with serving(tmp_path, Refusing(judge)) as served:
        answer = served.http.post("/v1/rewards", json=body(steps)).json()
    assert [each["reward"]["value"] for each in answer["rewards"]] == [None, CERTAIN * 1.5]
    assert "no such thing" in answer["rewards"][0]["reward"]["message"]


def test_steps_of_one_parent_are_handed_in_together() -> None:
    order: list[str] = []

    class Noting(TrivialEngine):
        def submit(self, task: Any, candidate: Candidate, *rest: Any, **more: Any) -> Future[Any]:
            order.append(more["beside"].source)
            return super().submit(task, candidate, *rest, **more)

    steps = [pair(3.0, parent, number) for number in range(4) for parent in (1.0, 2.0)]
    assert [r.value for r in rewards(Noting(judge), [TASK], steps)] == [
        CERTAIN * 3.0,
        CERTAIN * 1.5,
    ] * 4
    changes = sum(one != other for one, other in itertools.pairwise(order))
    assert changes == 1


def test_a_pair_of_a_task_that_was_not_sent_is_refused(tmp_path: Path) -> None:
    wrong = RewardPair(task=1, parent=None, candidate=program(1.0))
    with serving(tmp_path) as served:
        response = served.http.post("/v1/rewards", json=body([wrong]))
    assert response.status_code == 422
    assert "names task 1" in response.json()["error"]
