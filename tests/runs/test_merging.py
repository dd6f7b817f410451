"""The merger: what two programs gained on different workloads is gained by one."""

from __future__ import annotations

from concurrent.futures import Future
from pathlib import Path

import pytest

from kernel_smith.proposers.base import InThreads, NothingToPropose, parent_of
from kernel_smith.proposers.merger import Merger
from kernel_smith.records import (
    Budget,
    Candidate,
    Elite,
    Note,
    Proposal,
    Request,
    RunConfig,
    Specialists,
)
from kernel_smith.runs.config import configure
from kernel_smith.runs.first_programs import begin_with
from kernel_smith.runs.run import Run
from kernel_smith.store import Store
from kernel_smith.testing.numbers import Nudger
from kernel_smith.testing.workloads import (
    TASK,
    TwoWorkloads,
    speeds_of,
    speeds_program,
    with_speeds,
)


def elite(**speeds: float) -> Elite:
    own = speeds_program(speeds)
    return Elite(candidate=own, evaluation=with_speeds(own, speeds))


def asked(parent: Elite, **specialists: Elite) -> Request:
    context = (Specialists(programs=specialists),) if specialists else ()
    return Request(task=TASK, backend="cpp", parent=parent, context=context)


def test_each_workload_is_taken_from_whoever_is_best_there() -> None:
    parent, odd, wide = elite(odd=1, wide=1), elite(odd=3, wide=0.5), elite(odd=0.5, wide=2)
    made = Merger().propose(asked(parent, odd=odd, wide=wide))
    assert speeds_of(made.candidate) == {"odd": 3, "wide": 2}
    assert made.parents[0] == parent.candidate.content_hash
    assert set(made.parents[1:]) == {odd.candidate.content_hash, wide.candidate.content_hash}


def test_a_merger_is_proposed_once_also_after_a_resume() -> None:
    request = asked(elite(odd=1, wide=1), odd=elite(odd=3, wide=1))
    merger = Merger()
    made = merger.propose(request)
    resumed = Merger()
    resumed.learn(made, with_speeds(made.candidate, speeds_of(made.candidate)))
    for worker in (merger, resumed):
        with pytest.raises(NothingToPropose):
            worker.propose(request)


@pytest.mark.parametrize(
    "request_",
    [
        asked(elite(odd=1, wide=1)),
        asked(elite(odd=1, wide=1), odd=elite(odd=1.001, wide=3)),
        asked(elite(odd=1, wide=1).model_copy(update={"candidate": Candidate(source="x = 1")})),
    ],
    ids=["nobody", "hardly-faster", "no-functions"],
)
def test_without_anything_to_gain_nothing_is_merged(request_: Request) -> None:
    with pytest.raises(NothingToPropose):
        Merger().propose(request_)


class OneAtATime(Nudger):
    """Makes one workload faster, and the other slower, so that neither leads by itself."""

    name = "nudger"

    def start(self, request: Request) -> Future[Proposal | Note]:
        speeds = speeds_of(parent_of(request).candidate)
        chosen, other = ("odd", "wide") if request.seed % 2 else ("wide", "odd")
        gain = 1.05 + request.seed % 7 / 100
        speeds = {chosen: round(speeds[chosen] * gain, 4), other: round(speeds[other] / 1.2, 4)}
        parent = parent_of(request).candidate.content_hash
        done: Future[Proposal | Note] = Future()
        done.set_result(
            Proposal(candidate=speeds_program(speeds), proposer=self.name, parents=(parent,))
        )
        return done


def test_in_a_run_the_merger_finds_what_nobody_else_does(tmp_path: Path) -> None:
    config = RunConfig(
        backend="cpp",
        proposers={"nudger": 1.0, "merger": 0.5},
        budget=Budget(evaluations=30),
    )
    config = begin_with(config, TASK, [speeds_program({"odd": 1.0, "wide": 1.0})], with_seed=False)
    with (
        Store.open(tmp_path / "runs.sqlite", create=True) as store,
        Run.start(store, TASK, config) as run,
    ):
        workers = {"nudger": OneAtATime(), "merger": InThreads(Merger(), 1)}
        run.search(TwoWorkloads(), workers=workers)
        best = run.state.best
        assert best is not None
        (made,) = [
            step.proposal
            for step in run.state.steps.values()
            if step.proposal.candidate == best.candidate
        ]
        assert made.proposer == "merger"
        assert min(speeds_of(best.candidate).values()) > 1
        again = run.state.front.specialists()
    assert again


def test_a_task_of_one_workload_has_no_use_for_it() -> None:
    one = TASK.model_copy(update={"workloads": TASK.workloads[:1]})
    starts = [speeds_program({"odd": 1.0, "wide": 1.0})]
    assert "merger" in configure(TASK, "cpp", starts=starts).proposers
    assert "merger" not in configure(one, "cpp", starts=starts).proposers
