"""The model as a proposer: proposals, one re-ask, repairs, several models, budgets."""

from __future__ import annotations

import contextlib
import random
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.proposers.base import Worker
from kernel_smith.proposers.model import Model, ModelProposer, Settings, failures
from kernel_smith.proposers.model.choice import Choice
from kernel_smith.proposers.model.repair import is_near_miss
from kernel_smith.records import (
    Accuracy,
    Candidate,
    Contrast,
    Elite,
    ErrorBin,
    Evaluation,
    Exemplars,
    Focus,
    Lessons,
    Plan,
    Proposal,
    Reason,
    Request,
    Task,
    Usage,
    Workload,
)
from kernel_smith.testing.openai_server import OpenAIServer, Reply

TASK = Task(name="shifted_relu", source="class Model: ...")
PARENT = "import torch\n\n\nclass ModelNew(torch.nn.Module):\n    def forward(self, x):\n"
PARENT += "        return x + 1\n"
CHILD = PARENT.replace("x + 1", "1 + x")
MENDED = PARENT.replace("x + 1", "x + 1.0")


def answer(source: str, said: str = "Change: swap the operands.") -> Reply:
    return Reply(f"{said}\n\n```python\n{source}```\n")


def request(source: str = PARENT, **changes: Any) -> Request:
    candidate = Candidate(source=source, name="mine.py")
    parent = Elite(candidate=candidate, evaluation=made_up(TASK, candidate, 1.0))
    return Request(task=TASK, backend="cpp", parent=parent, **changes)


@contextlib.contextmanager
def proposer(*servers: OpenAIServer, **options: Any) -> Iterator[ModelProposer]:
    caps = {name: options.pop(name) for name in ("tokens", "dollars", "spent") if name in options}
    changes = {
        name: options.pop(name)
        for name in ("mode", "max_repairs", "max_prompt_tokens", "give_up_after")
        if name in options
    }
    fields: dict[str, Any] = {"retries": 1, "backoff_seconds": 0.01, "max_tokens": 1000} | options
    models = tuple(
        Model(name=f"model-{number}", base_url=server.base_url, **fields)
        for number, server in enumerate(servers)
    )
    made = ModelProposer(Settings(models=models, **changes), **caps)
    try:
        yield made
    finally:
        made.close()


def failed(proposal: Proposal, reason: Reason, **changes: Any) -> Evaluation:
    evaluation = made_up(TASK, proposal.candidate, reason)
    return evaluation.model_copy(update={"message": "line 3: no such thing", **changes})


def test_a_proposal_tells_where_it_came_from() -> None:
    other = Elite(
        candidate=Candidate(source=MENDED),
        evaluation=made_up(TASK, Candidate(source=MENDED), 2.0),
    )
    with OpenAIServer([answer(CHILD)]) as server, proposer(server) as asked:
        plain: Worker = asked
        proposal = plain.start(request(context=(Exemplars(programs=(other,)),))).result()
    assert isinstance(proposal, Proposal)
    assert proposal.candidate == Candidate(source=CHILD, name="mine.py")
    assert proposal.proposer == "model"
    assert proposal.parents == (Candidate(source=PARENT).content_hash, other.candidate.content_hash)
    assert proposal.summary == "swap the operands."
    before = {"value": 1.0, "low": 0.99, "high": 1.01}
    assert proposal.details == {"mode": "full", "parent_speedup": before}
    conversation = proposal.conversation
    assert conversation is not None
    assert conversation.model == "model-0"
    assert conversation.response == answer(CHILD).text
    assert [dict(message) for message in conversation.messages] == server.requests[0]["messages"]
    assert conversation.usage.requests == 1
    assert asked.ledger.spent == conversation.usage


def test_edits_change_the_parent() -> None:
    text = "<<<<<<< SEARCH\nreturn x + 1\n=======\nreturn 1 + x\n>>>>>>> REPLACE"
    with OpenAIServer([Reply(text)]) as server, proposer(server, mode="edits") as asked:
        proposal = asked.propose(request())
    assert proposal.candidate.source == CHILD
    assert proposal.details["mode"] == "edits"


def test_a_useless_answer_is_sent_back_once_with_the_reason() -> None:
    half = Reply(f"```python\n{CHILD[:60]}")
    with OpenAIServer([half, answer(CHILD)]) as server, proposer(server) as asked:
        proposal = asked.propose(request())
    assert proposal.candidate.source == CHILD
    assert proposal.details["asked_again"] is True
    assert proposal.conversation is not None
    assert proposal.conversation.usage.requests == 2
    again = server.requests[1]["messages"]
    assert [message["role"] for message in again] == ["system", "user", "assistant", "user"]
    assert "not complete" in again[-1]["content"]


def test_two_useless_answers_are_an_error_with_the_conversation() -> None:
    with OpenAIServer([Reply("No."), Reply("Never.")]) as server, proposer(server) as asked:
        with pytest.raises(failures.NoProgram, match="no program") as caught:
            asked.propose(request())
        assert len(server.requests) == 2
        conversation = caught.value.conversation
        assert conversation is not None
        assert conversation.response == "Never."
        assert conversation.usage == asked.ledger.spent


def test_answers_without_text_are_told_with_the_servers_word_for_it() -> None:
    silent = Reply("", finish="tool_calls")
    with OpenAIServer([silent]) as server, proposer(server) as asked:
        with pytest.raises(failures.NoProgram, match=r"no text .*tool_calls") as caught:
            asked.propose(request())
        assert "without tools" in caught.value.hint


def test_an_answer_that_was_cut_off_is_an_error() -> None:
    cut = Reply(answer(CHILD).text[:-20], finish="length")
    with (
        OpenAIServer([cut]) as server,
        proposer(server) as asked,
        pytest.raises(failures.Truncated, match="1000 tokens") as caught,
    ):
        asked.propose(request())
    assert len(server.requests) == 1
    assert caught.value.conversation is not None


def test_an_estimated_usage_is_marked() -> None:
    reply = Reply(answer(CHILD).text, send_usage=False)
    with OpenAIServer([reply]) as server, proposer(server) as asked:
        assert asked.propose(request()).details["usage_estimated"] is True


def test_a_near_miss_is_mended_in_a_follow_up() -> None:
    thinking = Reply(answer(CHILD).text, thoughts="long thoughts")
    with OpenAIServer([thinking, answer(MENDED)]) as server, proposer(server) as asked:
        first = asked.propose(request())
        asked.learn(first, failed(first, Reason.COMPILER_REJECTED))
        second = asked.propose(request("another parent"))
    assert second.candidate.source == MENDED
    assert second.parents == first.parents
    assert second.details["repairs"] == first.candidate.content_hash
    told = server.requests[1]["messages"]
    assert [message["role"] for message in told] == ["system", "user", "assistant", "user"]
    assert told[2]["content"] == answer(CHILD).text.strip()
    assert "line 3: no such thing" in told[3]["content"]


_TWO = Task(
    name="two", source="class Model: ...", workloads=(Workload(name="odd"), Workload(name="wide"))
)
_STEPS = "".join(f"    x = x + {number}\n" for number in range(60))
_FUNCTIONS = "".join(f"def run_{name}(x):\n{_STEPS}    return x\n\n\n" for name in ("odd", "wide"))
_PROGRAM = f"import torch\n\n\n{_FUNCTIONS}class ModelNew(torch.nn.Module):\n" + (
    "    def forward(self, x):\n        return run_odd(x) if len(x) == 9 else run_wide(x)\n"
)


def edit(old: str, new: str) -> Reply:
    return Reply(f"Change: it.\n<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE\n")


def test_a_model_that_is_shown_one_workloads_part_changes_that_alone_and_mends_it() -> None:
    """The lines that it names are in the folded part as well, where they are not meant."""
    focus = Focus(workload="odd", why="it is at 20% of the device's limit")
    candidate = Candidate(source=_PROGRAM, name="mine.py")
    parent = Elite(candidate=candidate, evaluation=made_up(_TWO, candidate, 1.0))
    asking = Request(task=_TWO, backend="cpp", parent=parent, context=(focus,))
    wrong, right = "    x = x * nine", "    x = x * 9"
    replies = [edit("    x = x + 9", wrong), edit(wrong, right)]
    with OpenAIServer(replies) as server, proposer(server) as asked:
        first = asked.propose(asking)
        asked.learn(first, made_up(_TWO, first.candidate, Reason.COMPILER_REJECTED))
        second = asked.propose(asking)
    shown = server.requests[0]["messages"][1]["content"]
    assert shown.count("    x = x + 9\n") == 1 and "run_wide, 62 lines]" in shown
    assert "`odd` is the one with the most left to gain: it is at 20%" in shown
    repair = server.requests[1]["messages"][-1]["content"]
    assert wrong in repair and "run_wide, 62 lines]" in repair
    assert "leave these lines where they are" in repair and "SEARCH/REPLACE" in repair
    assert first.candidate.source == _PROGRAM.replace("    x = x + 9", wrong, 1)
    assert second.candidate.source == _PROGRAM.replace("    x = x + 9", right, 1)


def test_who_carries_out_a_plan_is_shown_the_whole_program() -> None:
    """It may be about any workload."""
    focus = Focus(workload="odd", why="it is slow")
    candidate = Candidate(source=_PROGRAM, name="mine.py")
    parent = Elite(candidate=candidate, evaluation=made_up(_TWO, candidate, 1.0))
    planned = (focus, Plan(text="Unroll the additions of run_wide."))
    asking = Request(task=_TWO, backend="cpp", parent=parent, context=planned)
    with OpenAIServer([answer(CHILD)]) as server, proposer(server) as asked:
        made = asked.propose(asking)
    shown = server.requests[0]["messages"][1]["content"]
    assert shown.count("    x = x + 9\n") == 2 and "Where to begin" not in shown
    assert "focus" not in made.details


def test_of_programs_beside_the_parent_the_same_part_is_shown() -> None:
    focus = Focus(workload="odd", why="it is slow")
    candidate = Candidate(source=_PROGRAM, name="mine.py")
    other = Candidate(source=_PROGRAM.replace("x + 9", "x + nine"))
    parent, beside = (
        Elite(candidate=each, evaluation=made_up(_TWO, each, 1.0)) for each in (candidate, other)
    )
    context = (focus, Exemplars(programs=(beside,)), Contrast(programs=(beside,)))
    asking = Request(task=_TWO, backend="cpp", parent=parent, context=context)
    with OpenAIServer([answer(CHILD)]) as server, proposer(server) as asked:
        asked.propose(asking)
    shown = server.requests[0]["messages"][1]["content"]
    assert shown.count("x + nine") == 2 and shown.count("run_wide, 62 lines]") == 3


def test_who_is_asked_for_whole_programs_is_shown_the_whole_program() -> None:
    focus = Focus(workload="odd", why="it is slow")
    candidate = Candidate(source=_PROGRAM, name="mine.py")
    parent = Elite(candidate=candidate, evaluation=made_up(_TWO, candidate, 1.0))
    asking = Request(task=_TWO, backend="cpp", parent=parent, context=(focus,))
    with OpenAIServer([answer(CHILD)]) as server, proposer(server, mode="full") as asked:
        asked.propose(asking)
    assert server.requests[0]["messages"][1]["content"].count("    x = x + 9\n") == 2


def test_repairs_are_bounded() -> None:
    with OpenAIServer([answer(CHILD), answer(MENDED), answer(CHILD)]) as server:
        with proposer(server, max_repairs=1) as asked:
            first = asked.propose(request())
            asked.learn(first, failed(first, Reason.EXCEPTION))
            second = asked.propose(request())
            asked.learn(second, failed(second, Reason.EXCEPTION))
            third = asked.propose(request())
        with proposer(server, max_repairs=0) as asked:
            asked.learn(first, failed(first, Reason.EXCEPTION))
            fourth = asked.propose(request())
    assert second.details["repair_depth"] == 1
    assert "repairs" not in third.details
    assert "repairs" not in fourth.details


@pytest.mark.parametrize(
    ("reason", "most"), [(Reason.COMPILER_REJECTED, 3), (Reason.OUTPUT_SHAPE, 1)]
)
def test_compile_errors_are_worth_three_repairs_and_wrong_results_one(
    reason: Reason, most: int
) -> None:
    repairs = 0
    replies = [answer(CHILD.replace("1", str(number))) for number in range(2, 8)]
    with OpenAIServer(replies) as server, proposer(server) as asked:
        for _ in replies:
            made = asked.propose(request())
            repairs = max(repairs, made.details.get("repair_depth", 0))
            asked.learn(made, failed(made, reason))
    assert repairs == most


def test_a_repair_that_is_known_from_before_is_not_repeated() -> None:
    with OpenAIServer([answer(CHILD), answer(MENDED), answer(CHILD)]) as server:
        with proposer(server) as asked:
            first = asked.propose(request())
            asked.learn(first, failed(first, Reason.EXCEPTION))
            second = asked.propose(request())
        with proposer(server) as resumed:
            resumed.learn(first, failed(first, Reason.EXCEPTION))
            resumed.learn(second, made_up(TASK, second.candidate, 1.2))
            assert "repairs" not in resumed.propose(request()).details


def test_a_follow_up_that_is_too_long_shows_the_program_alone() -> None:
    lessons = ("remember " * 60,) * 20
    with OpenAIServer([answer(CHILD), answer(MENDED)]) as server, proposer(server) as asked:
        first = asked.propose(request(context=(Lessons(lessons=lessons),)))
    with (
        OpenAIServer([answer(MENDED)]) as server,
        proposer(server, max_prompt_tokens=2500) as asked,
    ):
        asked.learn(first, failed(first, Reason.EXCEPTION))
        asked.propose(request())
    told = server.requests[0]["messages"]
    assert [message["role"] for message in told] == ["system", "user"]
    assert "return 1 + x" in told[1]["content"]


def test_only_near_misses_are_mended() -> None:
    candidate = Candidate(source=CHILD)

    def outcome(reason: Reason, error: float | None = None, right: int = 0) -> Evaluation:
        accuracy = Accuracy(
            candidate_error=error,
            reference_error=1e-7,
            allowed_error=1e-5,
            histogram=(
                ErrorBin(up_to=1.0, elements=right),
                ErrorBin(up_to=None, elements=100 - right),
            ),
        )
        return made_up(TASK, candidate, reason).model_copy(update={"accuracy": accuracy})

    near = [
        outcome(Reason.SYNTAX_ERROR),
        outcome(Reason.COMPILER_REJECTED),
        outcome(Reason.CRASHED),
        outcome(Reason.OUTPUT_DTYPE),
        outcome(Reason.PRECISION),
        outcome(Reason.WRONG_VALUES, 5e-4),
        outcome(Reason.WRONG_VALUES, 3.0, right=90),
        outcome(Reason.NON_FINITE, None, right=60),
    ]
    far = [
        made_up(TASK, candidate, 1.0),
        made_up(TASK, candidate, Reason.WRONG_VALUES),
        outcome(Reason.WRONG_VALUES, 3.0, right=10),
        outcome(Reason.NON_FINITE),
        outcome(Reason.DECOY_KERNEL),
        outcome(Reason.CALL_TIMEOUT),
    ]
    assert [is_near_miss(item) for item in near] == [True] * len(near)
    assert [is_near_miss(item) for item in far] == [False] * len(far)


def test_models_are_asked_by_weight_and_chance_is_the_requests() -> None:
    with OpenAIServer([answer(CHILD)]) as one, OpenAIServer([answer(CHILD)]) as two:
        models = (
            Model(name="often", base_url=one.base_url, weight=9),
            Model(name="seldom", base_url=two.base_url, weight=1),
        )
        asked = ModelProposer(Settings(models=models))
        names = [
            said.model
            for seed in range(40)
            if (said := asked.propose(request(seed=seed)).conversation) is not None
        ]
        again = asked.propose(request(seed=3)).conversation
        asked.close()
    assert 0 < names.count("seldom") < 15
    assert again is not None
    assert again.model == names[3]


@pytest.mark.parametrize(("price", "often"), [(1.0, "good"), (100.0, "cheap")])
def test_of_several_models_the_one_that_gains_most_per_dollar_is_asked_more_often(
    price: float, often: str
) -> None:
    """The good one gains 20% each time, the cheap one 5%."""
    priced = {"price_completion": 1.0, "max_tokens": 1000}
    gains = {"good": 1.2, "cheap": 1.05}
    with OpenAIServer([answer(CHILD)]) as server:
        models = (
            Model(name="good", base_url=server.base_url, price_prompt=price, **priced),
            Model(name="cheap", base_url=server.base_url, price_prompt=1.0, **priced),
        )
        asked, again = (ModelProposer(Settings(models=models)) for _ in range(2))
        names = []
        for seed in range(60):
            made = asked.propose(request(seed=seed))
            assert made.conversation is not None
            names.append(made.conversation.model)
            shown = made_up(TASK, made.candidate, gains[names[-1]])
            asked.learn(made, shown)
            again.learn(made, shown)  # as where a run is resumed
        later = [again.propose(request(seed=seed)).conversation for seed in range(60, 80)]
        asked.close()
        again.close()
    resumed = [said.model for said in later if said is not None]
    assert names[30:].count(often) > 20 and resumed.count(often) > 12
    assert len(set(names)) == 2  # nobody is forgotten


def test_answers_of_no_use_cost_as_well() -> None:
    models = tuple(Model(name=name, base_url="http://h/v1") for name in ("talks", "writes"))
    choice, usage = Choice(models), Usage(prompt_tokens=1000, completion_tokens=500)
    for _ in range(20):
        choice.note("talks", usage, gain=0.0)
        choice.note("writes", usage, gain=1.05)
    drawn = [choice.draw(models, random.Random(seed)).name for seed in range(100)]
    assert drawn.count("writes") > 70


def test_a_model_that_is_not_there_is_left_out() -> None:
    with (
        OpenAIServer([Reply(status=404)]) as gone,
        OpenAIServer([answer(CHILD)]) as there,
        proposer(gone, there) as asked,
    ):
        for seed in range(8):
            assert asked.propose(request(seed=seed)).candidate.source == CHILD
        assert len(gone.requests) == 1


def test_without_any_model_every_request_fails_at_once() -> None:
    with OpenAIServer([Reply(status=401)]) as server, proposer(server) as asked:
        for _ in range(3):
            with pytest.raises(failures.KeyRefused) as caught:
                asked.propose(request())
            assert caught.value.final
        assert len(server.requests) == 1


def test_a_model_that_gives_nothing_of_use_is_left_out_with_the_reason_and_the_cost() -> None:
    good, bad = answer(CHILD), Reply("No.")
    with (
        OpenAIServer([bad, bad, bad, bad, good, bad]) as server,
        proposer(server, give_up_after=3, price_prompt=1e3, price_completion=1e3) as asked,
    ):
        for _ in range(2):
            with pytest.raises(failures.NoProgram) as caught:
                asked.propose(request())
        assert asked.propose(request()).candidate.source == CHILD, "and it begins anew"
        before = asked.ledger.spent
        for _ in range(3):
            with pytest.raises(failures.ModelError) as caught:
                asked.propose(request())
        spent = asked.ledger.spent
        error = caught.value
        assert isinstance(error, failures.GivenUp) and error.final
        assert "model-0 gave nothing of use 3 times in a row (6 requests, " in error.what
        tokens = spent.prompt_tokens - before.prompt_tokens
        tokens += spent.completion_tokens - before.completion_tokens
        assert f"{tokens:,} tokens, $" in error.what
        assert "no program" in error.what
        assert error.conversation is not None, "what it cost is kept with the step"
        with pytest.raises(failures.GivenUp) as again:
            asked.propose(request())
        assert again.value.conversation is None, "and counted once"
        assert asked.ledger.spent == spent


def test_another_model_takes_over_from_one_that_is_given_up() -> None:
    with (
        OpenAIServer([Reply("No.")]) as bad,
        OpenAIServer([answer(CHILD)]) as good,
        proposer(bad, good, give_up_after=1) as asked,
    ):
        errors: list[failures.ModelError] = []
        for seed in range(8):
            try:
                assert asked.propose(request(seed=seed)).candidate.source == CHILD
            except failures.GivenUp as error:
                errors.append(error)
        assert [error.final for error in errors] == [False]
        assert len(bad.requests) == 2


def test_the_caps_hold_for_many_threads_and_count_earlier_spending() -> None:
    def work(seed: int) -> bool:
        try:
            asked.propose(request(seed=seed))
        except failures.BudgetSpent:
            return False
        return True

    with OpenAIServer([answer(CHILD)]) as server:
        earlier = Usage(prompt_tokens=9_000, completion_tokens=1_000)
        with proposer(server, tokens=30_000, spent=earlier) as asked:
            with ThreadPoolExecutor(6) as threads:
                done = list(threads.map(work, range(40)))
            spent = asked.ledger.spent
    assert 0 < sum(done) < 40
    assert len(server.requests) == sum(done)
    assert spent.prompt_tokens + spent.completion_tokens <= 30_000


def test_a_cap_on_dollars_demands_prices() -> None:
    with OpenAIServer([answer(CHILD)]) as server:
        with (
            pytest.raises(BadInput, match="price of model-0 is not known"),
            proposer(server, dollars=1.0),
        ):
            pass
        prices = {"price_prompt": 1000.0, "price_completion": 1000.0}
        with proposer(server, dollars=1.0, **prices) as asked, pytest.raises(failures.BudgetSpent):
            asked.propose(request())
    assert server.requests == []


def test_a_budget_that_is_reserved_for_others_is_not_held_against_the_model() -> None:
    with (
        OpenAIServer([Reply(answer(CHILD).text, latency=1)]) as server,
        proposer(server, give_up_after=1, tokens=7000) as asked,
    ):
        under_way = asked.start(request())
        while not server.requests:
            time.sleep(0.01)
        with pytest.raises(failures.BudgetSpent) as caught:
            asked.propose(request())
        assert caught.value.under_way == 1 and not caught.value.final
        assert under_way.result() is not None
        assert asked.propose(request()).candidate.source == CHILD, "it took less, and goes on"
