"""A chooser whose policy is a model's first token, over a real connection."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from timed_evaluations import evaluated

from kernel_smith.errors import BadInput
from kernel_smith.proposers.base import WorkerFailed
from kernel_smith.proposers.chooser import Adviser, Chooser, menu_at, open_adviser
from kernel_smith.proposers.chooser.letters import odds_of
from kernel_smith.proposers.chooser.options import LABELS, MOST
from kernel_smith.proposers.model.ledger import Ledger
from kernel_smith.proposers.mutator.sites import machine_of
from kernel_smith.records import Elite, Proposal, Request, Usage
from kernel_smith.runs.config import configure, own_starts
from kernel_smith.tasks import find_task
from kernel_smith.testing.openai_server import OpenAIServer, Reply

TASK = find_task("rotary_embedding")
(START,) = own_starts(TASK, "cpp")
ELITE = Elite(candidate=START, evaluation=evaluated(START, 0.5))
MENU = menu_at(START, machine_of(ELITE.evaluation))
REQUEST = Request(task=TASK, backend="cpp", parent=ELITE)
SECOND = MENU.options[1]


def likes(label: str, **more: float) -> Reply:
    return Reply(label, first_token={label: math.log(0.9), **more})


@contextlib.contextmanager
def advised_by(*replies: Reply, more: str = "") -> Iterator[tuple[Adviser, OpenAIServer]]:
    with OpenAIServer(replies) as server:
        adviser = open_adviser(f"mine@{server.base_url},retries=0{more}")
        with contextlib.closing(adviser):
            yield adviser, server


@pytest.mark.parametrize("streamed", [True, False])
def test_what_the_model_likes_is_proposed_and_what_it_cost_is_kept(streamed: bool) -> None:
    reply = Reply(SECOND.label, first_token={SECOND.label: math.log(0.999)}, stream=streamed)
    with advised_by(reply) as (adviser, server):
        adviser.check()
        made = Chooser(adviser).propose(REQUEST)
    assert isinstance(made, Proposal)
    assert made.summary == str(SECOND)
    asked = server.requests[-1]
    assert (asked["logprobs"], asked["top_logprobs"], asked["max_tokens"]) == (True, 20, 1)
    assert asked["temperature"] == asked["top_p"] == 1.0
    (message,) = asked["messages"]
    assert START.source.strip() in message["content"]
    assert f"\n{SECOND.label}: {SECOND}\n" in message["content"]
    said = made.conversation
    assert said is not None and (said.model, said.response) == ("mine", SECOND.label)
    assert said.usage.prompt_tokens > 100


def test_one_forward_pass_is_the_whole_policy() -> None:
    first, second, third = (option.label for option in MENU.options[:3])
    reply = likes(first, **{f" {second}": math.log(0.05), "the": math.log(0.01)})
    with advised_by(reply) as (adviser, _):
        odds = adviser.advise(MENU, ELITE.evaluation).odds
    assert len(odds) == len(MENU.options)
    assert sum(odds) == pytest.approx(1)
    assert odds[0] / odds[1] == pytest.approx(0.9 / 0.05)
    unlisted = odds[MENU.options.index(MENU.options[2])]
    assert 0 < unlisted < odds[1], third


def test_an_endpoint_without_log_probabilities_is_an_error_that_says_so() -> None:
    with advised_by(Reply("A")) as (adviser, _):
        with pytest.raises(BadInput, match="has no log-probabilities") as caught:
            adviser.check()
        assert "vLLM" in caught.value.hint
        with pytest.raises(WorkerFailed) as failed:
            adviser.advise(MENU, ELITE.evaluation)
    assert failed.value.final  # nor will the next answer have any


def test_a_model_that_would_say_something_else_is_asked_again_and_then_no_more() -> None:
    with advised_by(Reply("<think>", first_token={"<think>": 0.0})) as (adviser, server):
        for number in range(10):
            with pytest.raises(WorkerFailed, match="would begin its answer with '<think>'") as each:
                adviser.advise(MENU, ELITE.evaluation)
            assert each.value.final == (number == 9)
            said = each.value.conversation
            assert said is not None and said.usage.requests == 1
    assert len(server.requests) == 10


def test_what_a_run_may_spend_is_kept() -> None:
    with OpenAIServer([likes("A")]) as server:
        named = f"mine@{server.base_url},retries=0"
        spent = Ledger(1000, None, Usage(prompt_tokens=999))
        with (
            contextlib.closing(open_adviser(named, spent)) as adviser,
            pytest.raises(WorkerFailed, match="1 are left"),
        ):
            adviser.advise(MENU, ELITE.evaluation)
        with pytest.raises(BadInput, match="the price of mine is not known"):
            open_adviser(named, Ledger(None, 1.0))
    assert not server.requests


def test_a_policy_is_kept_with_the_run_and_needs_a_chooser(tmp_path: Path) -> None:
    config = configure(TASK, "cpp", proposers=["chooser"], policy="mine@http://127.0.0.1:1/v1")
    assert config.settings["chooser"] == {"policy": "mine@http://127.0.0.1:1/v1"}
    path = tmp_path / "mine.json"
    path.write_text(json.dumps({"kind": "weights"}))
    config = configure(TASK, "cpp", proposers=["chooser"], policy=str(path))
    assert config.settings["chooser"] == {"policy": str(path)}
    with pytest.raises(BadInput, match="the chooser takes no part"):
        configure(TASK, "cpp", policy=str(path))


def test_a_folder_without_a_model_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="neither a model nor an adapter"):
        open_adviser(str(tmp_path))


@given(
    st.integers(1, MOST),
    st.dictionaries(st.sampled_from([*LABELS, "the", "<think>"]), st.floats(-30, -0.01)),
)
def test_odds_are_a_policy_in_which_who_is_not_listed_is_no_favourite(
    count: int, listed: dict[str, float]
) -> None:
    total = sum(map(math.exp, listed.values()))
    listed = {token: each - math.log(max(total, 1.0)) for token, each in listed.items()}
    labels = LABELS[:count]
    odds = odds_of(labels, listed)
    if odds is None:
        assert not set(labels) & set(listed)
        return
    assert sum(odds) == pytest.approx(1)
    known = [p for label, p in zip(labels, odds, strict=True) if label in listed]
    others = [p for label, p in zip(labels, odds, strict=True) if label not in listed]
    assert max(others, default=0.0) <= min(known) * (1 + 1e-9)
    ranked = sorted((label for label in labels if label in listed), key=lambda each: listed[each])
    assert ranked == sorted(ranked, key=lambda each: odds[labels.index(each)])
