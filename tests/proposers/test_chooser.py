"""The chooser: what its policy likes, never twice, the same again after a resume, in a run."""

from __future__ import annotations

import math
from collections import Counter
from concurrent.futures import Future
from pathlib import Path

import pytest
from timed_evaluations import evaluated

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up, made_up_beside
from kernel_smith.proposers.base import NothingToPropose
from kernel_smith.proposers.chooser import ByNumbers, Chooser, Policy, menu_at, read_policy
from kernel_smith.proposers.chooser.features import Facts, features_of
from kernel_smith.proposers.mutator.sites import machine_of
from kernel_smith.records import (
    Budget,
    Candidate,
    Elite,
    Evaluation,
    Options,
    Proposal,
    Request,
    RunConfig,
    Task,
)
from kernel_smith.runs.config import configure, own_starts
from kernel_smith.runs.first_programs import begin_with
from kernel_smith.runs.run import Run
from kernel_smith.runs.workers import workers_of
from kernel_smith.store import Store
from kernel_smith.tasks import find_task
from kernel_smith.training.choices.examples import examples_of
from kernel_smith.training.choices.recorded import recorded_states

TASK = find_task("rotary_embedding")
(START,) = own_starts(TASK, "cpp")
ELITE = Elite(candidate=START, evaluation=evaluated(START, 0.5))
UNROLLS = Policy(kind="weights", weights={"edit=unroll-loop": 50.0})
ANY = Policy(kind="weights")


def request(seed: int = 0) -> Request:
    return Request(task=TASK, backend="cpp", parent=ELITE, seed=seed)


def until_the_end(chooser: Chooser) -> list[Proposal]:
    made: list[Proposal] = []
    while True:
        try:
            made.append(chooser.propose(request(len(made))))
        except NothingToPropose:
            return made


def test_what_the_policy_likes_comes_first_and_all_else_later() -> None:
    made = until_the_end(Chooser(ByNumbers(UNROLLS)))
    kinds = [proposal.details["edits"][0] for proposal in made]
    unrolls = kinds.count("unroll-loop")
    assert unrolls > 0
    assert set(kinds[:unrolls]) == {"unroll-loop"}
    menu = menu_at(START, machine_of(ELITE.evaluation))
    assert Counter(proposal.candidate.source for proposal in made) == Counter(
        option.program.source for option in menu.options
    )


def test_after_a_resume_nothing_is_proposed_twice() -> None:
    first = Chooser(ByNumbers(ANY), seed=3)
    before = [first.propose(request(number)) for number in range(4)]
    resumed = Chooser(ByNumbers(ANY), seed=3)
    for proposal in before:
        resumed.learn(proposal, evaluated(proposal.candidate, 1.0))
    assert resumed.propose(request(9)) == first.propose(request(9))
    after = until_the_end(resumed)
    assert not {each.summary for each in before} & {each.summary for each in after}


def test_numbers_of_an_option_do_not_depend_on_what_else_is_listed() -> None:
    facts = Facts(0.5, "x86_64")
    menu = menu_at(START)
    tried = {option.signature for option in menu.options[::2]}
    rest = menu_at(START, without=tried, seed=7)
    numbers = dict(zip(map(str, menu.options), features_of(menu, facts), strict=True))
    assert len(rest.options) == len(menu.options) - len(tried)
    assert dict(zip(map(str, rest.options), features_of(rest, facts), strict=True)).items() <= (
        numbers.items()
    )
    unrolls = [own for name, own in numbers.items() if name.startswith("unroll-loop")]
    assert len(unrolls) == 2
    assert unrolls[0] != unrolls[1]  # by 4, and by 8


def test_numbers_tell_what_an_edit_makes_of_the_text_and_how_deep_it_lies() -> None:
    (matmul,) = own_starts(find_task("matmul"), "cpp")
    menu = menu_at(matmul)
    numbers = dict(zip(map(str, menu.options), features_of(menu, Facts(1.0, "")), strict=True))
    inner = numbers["simd-loop: loop over c in matmul no. 2"]
    outer = numbers["simd-loop: loop over c in matmul"]
    assert (inner["depth"], outer["depth"]) == (2, 1)
    assert inner["more:simd"] == outer["more:simd"] == pytest.approx(math.log(2))
    assert "more:loads" not in inner
    assert numbers["restrict-parameters: matmul"]["depth"] == 0


class UnrolledIsFaster:
    """An engine to which each `GCC unroll` makes a program a fifth faster."""

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        /,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        done: Future[Evaluation] = Future()
        evaluation = self._judged(task, candidate)
        done.set_result(
            evaluation if beside is None else made_up_beside(evaluation, self._judged(task, beside))
        )
        return done

    def _judged(self, task: Task, candidate: Candidate) -> Evaluation:
        return made_up(task, candidate, 1.2 ** candidate.source.count("GCC unroll"))


def test_a_run_with_the_chooser_alone_finds_what_pays(tmp_path: Path) -> None:
    path = tmp_path / "policy.json"
    path.write_text(UNROLLS.model_dump_json())
    config = RunConfig(
        backend="cpp",
        proposers={"chooser": 1.0},
        budget=Budget(evaluations=4),
        settings={"chooser": {"policy": str(path)}},
    )
    config = begin_with(config, TASK, [START], with_seed=False)
    with (
        Store.open(tmp_path / "runs.sqlite", create=True) as store,
        Run.start(store, TASK, config) as run,
        workers_of(config) as workers,
    ):
        run.search(UnrolledIsFaster(), workers=workers)
        assert run.state.best is not None
        assert "GCC unroll" in run.state.best.candidate.source
        who = Counter(step.proposal.proposer for step in run.state.steps.values())
    assert set(who) == {"start", "chooser"}
    examples = examples_of(recorded_states([tmp_path / "runs.sqlite"]))
    learnt = [choice for example in examples for choice in example.choices]
    assert len(learnt) == who["chooser"]  # what it did is there to learn from
    assert any(choice.edit == "unroll-loop" and choice.reward > 0.1 for choice in learnt)


def test_it_is_asked_by_name_and_reads_the_policy_that_is_shipped() -> None:
    config = configure(TASK, "cpp", proposers=["chooser"])
    assert config.proposers == {"chooser": 1.0}
    policy = read_policy()
    (softmax,) = own_starts(find_task("row_softmax"), "cpp")
    odds = policy.probabilities(features_of(menu_at(softmax), Facts(0.5, "x86_64")))
    assert sum(odds) == pytest.approx(1)
    assert max(odds) > 2 * min(odds)


def test_a_policy_that_is_not_there_is_named() -> None:
    config = RunConfig(
        backend="cpp",
        proposers={"chooser": 1.0},
        budget=Budget(evaluations=1),
        settings={"chooser": {"policy": "nowhere.json"}},
    )
    with pytest.raises(BadInput, match=r"nowhere\.json: cannot be read as a policy"):
        workers_of(config).__enter__()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"kind": "trees", "trees": [["edit=x", 1]]}', "trees: .*threshold"),
        ('{"kind": "trees", "trees": [["edit=x", 1, 0.5, ["y", 2, 0.1]]]}', "trees: .*threshold"),
        ('{"kind": "weights", "kinds": {"edit=x": 0}}', r"kinds\.edit=x: .*greater than 0"),
        ('{"kind": "weights", "temperature": 0}', "temperature: .*greater than 0"),
        ("not JSON", "Expecting value"),
    ],
)
def test_a_file_that_is_no_policy_is_refused_with_the_place(
    text: str, said: str, tmp_path: Path
) -> None:
    file = tmp_path / "policy.json"
    file.write_text(text)
    with pytest.raises(BadInput, match=rf"policy\.json: cannot be read as a policy \({said}"):
        read_policy(file)
