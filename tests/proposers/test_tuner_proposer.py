"""The tuner as a proposer: what it proposes, what it learns, and that a replay restores it."""

from __future__ import annotations

import json
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from kernel_smith.proposers.base import NothingToPropose, Writer
from kernel_smith.proposers.tuner import Tuner
from kernel_smith.proposers.tuner.find import find
from kernel_smith.proposers.tuner.search import Search
from kernel_smith.records import (
    MEANINGS,
    Accuracy,
    BaselineSpeedup,
    BaselineTiming,
    Candidate,
    Distribution,
    Elite,
    Environment,
    Evaluation,
    Interval,
    Proposal,
    Reason,
    Request,
    Stage,
    Task,
    Timing,
    WorkloadTiming,
)

SOURCE = 'TUNABLES = {"BLOCK": [32, 64, 128], "UNROLL": [1, 2, 4]}\nBLOCK = 64\nUNROLL = 1\n'
TASK = Task(name="anything", source="def get_inputs():\n    return []\n")
ENVIRONMENT = Environment(
    machine="m", processor="p", kernel="k", python="3", torch="2", compiler="c", kernel_smith="0"
)


def evaluation(speedup: float = 1.0, reason: Reason | None = None) -> Evaluation:
    interval = Interval(value=speedup, low=speedup, high=speedup)
    seconds = Distribution(p50=1e-5, p99=1e-5)
    baseline = BaselineTiming(baseline="eager", speedup=interval, seconds=seconds)
    workload = WorkloadTiming(
        workload="default", weight=1.0, candidate=seconds, baselines=(baseline,), rounds=3, calls=9
    )
    timing = Timing(
        speedups=(BaselineSpeedup(baseline="eager", speedup=interval),),
        workloads=(workload,),
        cores=(1,),
    )
    accuracy = Accuracy(candidate_error=0.0, reference_error=0.0, allowed_error=1.0)
    return Evaluation(
        task="anything",
        task_hash="a",
        candidate_hash="b",
        backend="cpp",
        stage=MEANINGS[reason].stage if reason else Stage.OK,
        reason=reason,
        timing=None if reason else timing,
        accuracy=None if reason else accuracy,
        environment=ENVIRONMENT,
        created_at=datetime(2026, 1, 1, tzinfo=UTC),
    )


def request(source: str = SOURCE, speedup: float = 1.0, seed: int = 0) -> Request:
    elite = Elite(candidate=Candidate(source=source), evaluation=evaluation(speedup))
    return Request(task=TASK, backend="cpp", parent=elite, seed=seed)


def propose_all(tuner: Tuner, speedup: float = 1.0) -> list[Proposal]:
    """Everything the tuner has to offer, each learned with the same speedup."""
    found: list[Proposal] = []
    while True:
        try:
            proposal = tuner.propose(request(seed=len(found)))
        except NothingToPropose:
            return found
        tuner.learn(proposal, evaluation(speedup))
        found.append(proposal)


def test_a_proposal_is_the_parent_with_other_numbers() -> None:
    tuner: Writer = Tuner()
    asked = request()
    proposal = tuner.propose(asked)
    assert proposal.proposer == "tuner"
    assert proposal.parents == (asked.parent.candidate.content_hash,)
    assert find(proposal.candidate.source).current == proposal.details["values"]
    assert proposal.candidate.source != SOURCE
    assert "->" in proposal.summary


def test_all_values_but_the_parents_are_proposed_once() -> None:
    proposals = propose_all(Tuner(patience=100))
    assert len({proposal.candidate.content_hash for proposal in proposals}) == len(proposals) == 8


def test_a_program_without_numbers_gives_nothing() -> None:
    with pytest.raises(NothingToPropose, match="no numbers"):
        Tuner().propose(request(source="x = 1.5\n"))


def test_a_structure_is_given_up_when_nothing_helps() -> None:
    assert len(propose_all(Tuner(patience=3))) == 3


def test_failures_count_as_no_gain_and_the_search_goes_on() -> None:
    tuner = Tuner(patience=100)
    for number in range(8):
        proposal = tuner.propose(request(seed=number))
        tuner.learn(proposal, evaluation(reason=Reason.COMPILER_REJECTED))
    with pytest.raises(NothingToPropose, match="tried"):
        tuner.propose(request())


def test_a_number_whose_every_change_is_wrong_is_given_up_even_after_a_replay() -> None:
    """The block belongs to what is computed: only the unrolling is left to vary."""
    tuner = Tuner(patience=100)
    learned = []

    def judge(proposal: Proposal) -> Evaluation:
        right = proposal.details["values"]["BLOCK"] == 64
        return evaluation(0.9) if right else evaluation(reason=Reason.WRONG_VALUES)

    for number in range(4):
        proposal = tuner.propose(request(seed=number))
        learned.append((proposal, judge(proposal)))
        tuner.learn(*learned[-1])
    with pytest.raises(NothingToPropose, match="tried"):
        tuner.propose(request())
    wrong = [proposal for proposal, result in learned if result.stage is Stage.INCORRECT]
    assert sorted(proposal.summary for proposal in wrong) == ["BLOCK 64 -> 128", "BLOCK 64 -> 32"]

    again = Tuner(patience=100)
    for proposal, result in learned:
        again.learn(proposal, result)
    with pytest.raises(NothingToPropose, match="tried"):
        again.propose(request())


def test_children_share_the_search_of_their_parent() -> None:
    tuner = Tuner(patience=100)
    seen = {SOURCE}
    source = SOURCE
    for number in range(8):
        proposal = tuner.propose(request(source=source, seed=number))
        tuner.learn(proposal, evaluation(1.0 + number))
        source = proposal.candidate.source
        assert source not in seen
        seen.add(source)
    with pytest.raises(NothingToPropose):
        tuner.propose(request(source=source))


def test_numbers_that_happen_to_be_equal_stay_apart() -> None:
    launch = """
import triton, triton.language as tl
@triton.jit
def f(x, BM: tl.constexpr, BN: tl.constexpr):
    pass
def g(x, n):
    f[(triton.cdiv(n, 32), triton.cdiv(n, 64))](x, BM=32, BN=64)
"""
    tuner = Tuner(patience=100)
    for number in range(49 - 1):
        proposal = tuner.propose(request(source=launch, seed=number))
        tuner.learn(proposal, evaluation())
        values = proposal.details["values"]
        if values["BM"] == values["BN"]:
            break
    child = tuner.propose(request(source=proposal.candidate.source, seed=99))
    assert set(child.details["values"]) == {"BM", "BN"}


def test_replaying_what_was_learned_restores_the_search() -> None:
    first = Tuner(patience=100)
    learned = []
    for number in range(5):
        proposal = first.propose(request(seed=number))
        learned.append(proposal)
        first.learn(proposal, evaluation(1.0 + number))
    second = Tuner(patience=100)
    for number, proposal in enumerate(learned):
        stored = Proposal.model_validate(json.loads(proposal.model_dump_json()))
        assert stored == proposal
        second.learn(stored, evaluation(1.0 + number))
    rest = propose_all(second)
    hashes = {proposal.candidate.content_hash for proposal in [*learned, *rest]}
    assert len(rest) == 3
    assert len(hashes) == 8


def test_equal_seeds_propose_the_same() -> None:
    def run() -> list[str]:
        tuner = Tuner(seed=7, patience=100)
        return [proposal.candidate.source for proposal in propose_all(tuner)]

    assert run() == run()


def test_an_autotuners_other_configurations_come_first() -> None:
    source = """
import triton
@triton.autotune(configs=[triton.Config({"BLOCK": 64}, num_warps=4),
                          triton.Config({"BLOCK": 4096}, num_warps=16)], key=["n"])
@triton.jit
def f(x, n, BLOCK: triton.language.constexpr):
    pass
"""
    proposal = Tuner().propose(request(source=source))
    assert proposal.details["values"] == {"BLOCK": 4096, "num_warps": 16}


def test_threads_never_get_the_same_program() -> None:
    tuner = Tuner(patience=100)
    with ThreadPoolExecutor(4) as threads:
        proposals = list(threads.map(lambda n: tuner.propose(request(seed=n)), range(8)))
    assert len({proposal.candidate.content_hash for proposal in proposals}) == 8


def test_importing_the_tuner_imports_nothing_heavy() -> None:
    code = (
        "import sys, kernel_smith.proposers.tuner\n"
        "print(sorted({'torch', 'numpy', 'optuna'} & set(sys.modules)))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout == "[]\n"


def test_failures_score_nothing_and_noise_says_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[float | None] = []
    monkeypatch.setattr(Search, "know", lambda self, values, score, **_: told.append(score))
    tuner = Tuner()
    proposal = tuner.propose(request(speedup=1.5))
    tuner.learn(proposal, evaluation(2.0))
    tuner.learn(proposal, evaluation(reason=Reason.COMPILER_REJECTED))
    tuner.learn(proposal, evaluation(reason=Reason.TOO_NOISY))
    assert told == [1.5, 2.0, 0.0, None]
