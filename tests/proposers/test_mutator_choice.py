"""What the mutator proposes: nothing twice, the same again from the same history, what paid."""

from __future__ import annotations

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from timed_evaluations import evaluated

from kernel_smith.knowledge.measured import Move, Point, Series, all_measured
from kernel_smith.proposers.base import NothingToPropose
from kernel_smith.proposers.mutator import EDITS, Edit, Mutator, Site
from kernel_smith.proposers.mutator.cpp.text import cpp_texts
from kernel_smith.proposers.mutator.edit import Machine, Splice, splice
from kernel_smith.proposers.mutator.priors import (
    PROMISES,
    Expected,
    expected_of,
    learnt_from,
    seen_in,
)
from kernel_smith.records import Candidate, Evaluation, Proposal, Request, Task
from kernel_smith.records.evaluation import Beside, Interval
from kernel_smith.records.step import Elite

SOURCE = '''
from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>

extern "C" void f(const float* x, const float* w, float* y, int64_t rows, int64_t columns) {
    for (int64_t r = 0; r < rows; ++r) {
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c) sum += x[r * columns + c] * w[c];
        y[r] = sum;
    }
}
"""

kernels = cpp(SOURCE)
'''

TASK = Task(name="t", source="")
ALONE = Machine(cores=1)


def request(source: str = SOURCE, backend: str = "cpp", seed: int = 0) -> Request:
    candidate = Candidate(source=source, backend=backend)
    parent = Elite(candidate=candidate, evaluation=evaluated(candidate, 1.0))
    return Request(task=TASK, backend=backend, parent=parent, seed=seed)


def proposals(mutator: Mutator, count: int, learn: float | None = None) -> list[Proposal]:
    made = []
    for number in range(count):
        made.append(mutator.propose(request(seed=number)))
        if learn is not None:
            mutator.learn(made[-1], evaluated(made[-1].candidate, learn))
    return made


def test_a_proposal_names_its_edits_and_its_parent() -> None:
    proposal = Mutator(1).propose(request())
    assert proposal.proposer == "mutator"
    assert proposal.parents == (request().parent.candidate.content_hash,)
    assert len(proposal.details["edits"]) == len(proposal.details["sites"]) >= 1
    assert all(name in proposal.summary for name in proposal.details["edits"])
    assert set(proposal.details["edits"]) <= {edit.name for edit in EDITS}
    assert proposal.candidate.source != SOURCE
    assert len(cpp_texts(proposal.candidate.source)) == 1


def test_no_change_is_proposed_twice() -> None:
    made = proposals(Mutator(2), 40)
    assert len({proposal.summary for proposal in made}) == 40


def judged(proposal: Proposal, binary: str) -> Evaluation:
    return evaluated(proposal.candidate, 1.0).model_copy(update={"binary": binary})


def of_binary(source: str, seed: int) -> Request:
    asked = request(source, seed=seed)
    parent = asked.parent.model_copy(
        update={"evaluation": asked.parent.evaluation.model_copy(update={"binary": "parent"})}
    )
    return asked.model_copy(update={"parent": parent})


def test_an_edit_that_the_compiler_undid_is_not_chained_and_comes_last_elsewhere() -> None:
    mutator, undone = Mutator(2), set()
    for seed in range(60):
        made = mutator.propose(of_binary(SOURCE, seed))
        names, places = made.details["edits"], made.details["sites"]
        steps = set(zip(names, places, strict=True))
        assert not steps & undone, "what leads nowhere alone does not in company"
        if len(steps) == 1 and names[0] in ("restrict-parameters", "simd-loop", "unroll-loop"):
            undone |= steps
            mutator.learn(made, judged(made, "parent"))
        else:
            mutator.learn(made, judged(made, f"another {seed}"))
    assert {name for name, _ in undone} >= {"restrict-parameters", "unroll-loop"}
    other = SOURCE.replace("float sum = 0.0f", "float sum = -0.0f")
    later = [mutator.propose(of_binary(other, seed)) for seed in range(25)]
    for made in later:
        assert not undone & set(zip(made.details["edits"], made.details["sites"], strict=True))


def test_a_program_at_which_the_compiler_undid_every_edit_offers_nothing_more() -> None:
    hints = [edit for edit in EDITS if edit.name in ("restrict-parameters", "simd-loop")]
    mutator, alone = Mutator(2, hints), 0
    for seed in range(10):
        try:
            made = mutator.propose(of_binary(SOURCE, seed))
        except NothingToPropose:
            break
        assert alone < 2, made.summary
        alone += len(made.details["edits"]) == 1
        mutator.learn(made, judged(made, "parent"))
    assert alone == 2
    other = SOURCE.replace("float sum = 0.0f", "float sum = -0.0f")
    assert mutator.propose(of_binary(other, 0)).details["edits"], "there it may be of use"


def test_some_proposals_chain_two_edits() -> None:
    counts = Counter(len(proposal.details["edits"]) for proposal in proposals(Mutator(3), 30))
    assert set(counts) == {1, 2}


def test_the_same_history_leads_to_the_same_proposals() -> None:
    first, second = (proposals(Mutator(4), 15, learn=1.1) for _ in range(2))
    assert first == second
    assert proposals(Mutator(5), 15, learn=1.1) != first


def test_a_resumed_mutator_continues_where_it_was() -> None:
    whole = Mutator(6)
    past = proposals(whole, 10, learn=1.1)
    resumed = Mutator(6)
    for proposal in past:
        resumed.learn(proposal, evaluated(proposal.candidate, 1.1))
    assert resumed.propose(request(seed=99)) == whole.propose(request(seed=99))


def test_threads_do_not_get_the_same_change() -> None:
    mutator = Mutator(7)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda number: mutator.propose(request(seed=number)), range(32)))
    assert len({proposal.summary for proposal in made}) == 32


def appending(name: str) -> Edit:
    """An edit with any number of sites that appends a comment."""

    def find(source: str, machine: Machine) -> list[Site]:
        end = len(source.encode())
        text = [f"# {name} {number}\n" for number in range(200)]
        return [Site(f"line {n}", (Splice(end, end, t),)) for n, t in enumerate(text)]

    return Edit(name, ("cpp",), f"Append {name}.", find, lambda s, site: splice(s, site.splices))


def test_edits_that_paid_are_preferred() -> None:
    mutator = Mutator(8, edits=[appending("good"), appending("bad")])
    chosen: Counter[str] = Counter()
    for number in range(60):
        proposal = mutator.propose(request(seed=number))
        names = proposal.details["edits"]
        mutator.learn(proposal, evaluated(proposal.candidate, 2.0 if names == ["good"] else 0.5))
        chosen.update(names)
    assert chosen["good"] > 2 * chosen["bad"]


@pytest.mark.parametrize(("more", "less"), [(2.0, 1.05), (1.2, 1.01)])
def test_a_great_gain_counts_more_than_a_small_one_and_noise_not_at_all(
    more: float, less: float
) -> None:
    gains = {"more": more, "less": less}
    mutator = Mutator(8, edits=[appending(name) for name in gains])
    chosen: Counter[str] = Counter()
    for number in range(80):
        proposal = mutator.propose(request(seed=number))
        names = proposal.details["edits"]
        gain = gains[names[0]] if len(set(names)) == 1 else 1.0
        mutator.learn(proposal, evaluated(proposal.candidate, gain))
        chosen.update(names)
    assert chosen["more"] > 2 * chosen["less"]


def after(learnt: dict[str, Any] | None) -> list[Proposal]:
    """What a mutator proposes after ten results like this one; None: like one without a gain."""
    mutator = Mutator(8, edits=[appending("one"), appending("other")])
    for number in range(10):
        proposal = mutator.propose(request(seed=number))
        result = learnt if learnt and proposal.details["edits"][0] == "one" else {"speedup": 1.0}
        mutator.learn(proposal, evaluated(proposal.candidate, **result))
    return [mutator.propose(request(seed=number)) for number in range(10, 40)]


def beside_parent(low: float, value: float, high: float) -> Beside:
    gain = Interval(value=value, low=low, high=high)
    return Beside(candidate_hash=request().parent.candidate.content_hash, gain=gain)


@pytest.mark.parametrize(
    "noise",
    [
        {"speedup": 1.3, "width": 0.35},
        {"speedup": 2.0, "beside": beside_parent(0.9, 1.3, 1.8)},
    ],
    ids=["by-itself", "side-by-side"],
)
def test_noise_teaches_as_much_as_no_gain(noise: dict[str, Any]) -> None:
    assert after(noise) == after(None)


def test_a_gain_side_by_side_counts_more_than_two_speedups_do() -> None:
    assert after({"speedup": 1.0, "beside": beside_parent(1.9, 2.0, 2.1)}) != after(None)


def test_the_parents_doubt_counts_as_well() -> None:
    """Of a child that is measured sharply over a parent that is not, nothing is known."""
    candidate = Candidate(source=SOURCE)
    doubtful = Elite(candidate=candidate, evaluation=evaluated(candidate, 1.3, 0.4))
    learnt = []
    for speedup in (1.3, 0.5):
        mutator = Mutator(8, edits=[appending("one"), appending("other")])
        for number in range(10):
            asked = request(seed=number).model_copy(update={"parent": doubtful})
            proposal = mutator.propose(asked)
            names = proposal.details["edits"]
            mutator.learn(
                proposal, evaluated(proposal.candidate, speedup if names[0] == "one" else 0.5)
            )
        learnt.append([mutator.propose(request(seed=number)) for number in range(10, 40)])
    assert learnt[0] == learnt[1]


def test_every_promise_is_about_an_edit_that_there_is() -> None:
    assert PROMISES.keys() <= {edit.name for edit in EDITS}


def test_what_recorded_runs_show_is_expected_of_an_edit() -> None:
    def move(name: str, tried: int, faster: int, gain: float | None) -> Move:
        return Move(name=name, tried=tried, faster=faster, slower=0, gain=gain)

    moves = [
        move("never", 200, 0, None),
        move("little", 200, 100, 1.01),
        move("often", 200, 100, 1.5),
        move("hardly tried", 10, 5, 1.5),
    ]
    found = learnt_from(moves)
    rates = {name: paid / (paid + failed) for name, (paid, failed) in found.items()}
    assert rates["never"] < rates["little"] < rates["hardly tried"] < rates["often"] < 0.5
    assert min(min(each) for each in found.values()) > 0, "no distribution without both"


def test_a_promise_comes_before_a_record_and_some_trust_before_nothing() -> None:
    named = {edit.name: edit for edit in EDITS}
    assert expected_of(named["parallelise-loop"]) == Expected(paid=4.0), "recorded on a single core"
    assert expected_of(named["vector-exponential"]).failed != Expected().failed, "recorded"
    elsewhere = replace(named["vector-exponential"], backends=("triton",))
    assert expected_of(elsewhere) == Expected(), "recorded for another backend"


def test_told_series_count_as_tries_of_the_same_change() -> None:
    points = [("baseline", 2.0), ("row in registers", 4.0), ("worse", 1.0), ("aligned", 4.0)]
    series = Series(
        task="t",
        family="norm",
        programs=tuple(Point(change=change, speed=speed) for change, speed in points),
        eager=(1.0, 1.0),
        compile=None,
    )
    assert seen_in([series], ["row in registers"]) == Expected(paid=2.0, failed=2.0)
    assert seen_in([series], ["aligned"]) == Expected(paid=1.0, failed=3.0), (
        "no faster than the best"
    )
    assert seen_in([series], ["baseline", "never told"]) == Expected(), "a change of nothing"


def test_what_an_edit_was_learnt_from_was_told_for_its_backend() -> None:
    told = {
        (each.backend, point.change)
        for each in all_measured()
        for series in each.series
        for point in series.programs
    }
    learnt = [edit for edit in EDITS if edit.told]
    assert {(backend, word) for e in learnt for backend in e.backends for word in e.told} <= told
    assert all(expected_of(edit) != Expected() for edit in learnt)


def test_nothing_is_proposed_once_everything_was_tried() -> None:
    one = Edit(
        "one", ("cpp",), "Once.", lambda s, _: _once(s), lambda s, site: splice(s, site.splices)
    )
    mutator = Mutator(9, edits=[one])
    assert mutator.propose(request()).candidate.source == SOURCE + "# once\n"
    with pytest.raises(NothingToPropose):
        mutator.propose(request())


def _once(source: str) -> list[Site]:
    end = len(source.encode())
    return [] if "# once" in source else [Site("end", (Splice(end, end, "# once\n"),))]


@pytest.mark.parametrize("source", ["", "def (", "x = 1\n"])
@pytest.mark.parametrize("backend", ["cpp", "triton"])
def test_a_program_without_kernels_offers_nothing(source: str, backend: str) -> None:
    with pytest.raises(NothingToPropose):
        Mutator(0).propose(request(source, backend))


def test_chains_of_proposals_stay_readable() -> None:
    mutator, source = Mutator(10), SOURCE
    for number in range(30):
        try:
            source = mutator.propose(request(source, seed=number)).candidate.source
        except NothingToPropose:
            source = mutator.propose(request(seed=number)).candidate.source
        assert len(cpp_texts(source)) == 1


def test_threads_are_not_proposed_where_one_core_is_timed() -> None:
    parent = Candidate(source=SOURCE)
    timed = evaluated(parent, 1.0)
    assert timed.timing is not None

    def edits(cores: tuple[int, ...]) -> set[str]:
        timing = timed.timing.model_copy(update={"cores": cores})  # type: ignore[union-attr]
        judged = timed.model_copy(update={"timing": timing})
        mutator, found = Mutator(), set()
        for seed in range(60):
            elite = Elite(candidate=parent, evaluation=judged)
            request = Request(
                task=Task(name="t", source=""), backend="cpp", parent=elite, seed=seed
            )
            try:
                found.update(mutator.propose(request).details["edits"])
            except NothingToPropose:
                break
        return found

    sharing = {edit.name for edit in EDITS if edit.sites(SOURCE) and not edit.sites(SOURCE, ALONE)}
    assert "parallelise-loop" in sharing
    assert edits((0,)).isdisjoint(sharing) and edits((0,))
    assert not edits((0, 1)).isdisjoint(sharing)
