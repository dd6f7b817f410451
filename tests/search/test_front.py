"""Who is best on which workload, and whom nobody beats everywhere."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.records import Elite, Reason
from kernel_smith.search.front import WorkloadFront
from kernel_smith.testing.workloads import WORKLOADS, speeds_program, with_speeds

Speeds = tuple[float, ...]


def elite(number: int, speeds: Speeds | None) -> Elite:
    own = speeds_program(dict.fromkeys(WORKLOADS, float(number)))
    outcome = Reason.WRONG_VALUES if speeds is None else dict(zip(WORKLOADS, speeds, strict=True))
    return Elite(candidate=own, evaluation=with_speeds(own, outcome))


def beats(one: Speeds, other: Speeds) -> bool:
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))


SPEEDS = st.none() | st.tuples(*[st.sampled_from([1.0, 1.5, 2.0, 3.0])] * len(WORKLOADS))


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 5), SPEEDS), max_size=20))
def test_the_front_is_what_no_other_program_beats(heard: list[tuple[int, Speeds | None]]) -> None:
    front, last = WorkloadFront(), dict[int, Speeds]()
    names = {number: elite(number, None).candidate.content_hash for number in range(6)}
    for number, speeds in heard:
        front.note(elite(number, speeds))
        last.pop(number, None)
        if speeds is not None:
            last[number] = speeds
    unbeaten = {
        names[number]
        for number, mine in last.items()
        if not any(beats(theirs, mine) for theirs in last.values())
    }
    assert set(front.members) == unbeaten
    by_name = {names[number]: speeds for number, speeds in last.items()}
    for place, workload in enumerate(WORKLOADS if last else ()):
        chosen = by_name[front.specialists()[workload]]
        assert chosen[place] == max(speeds[place] for speeds in last.values())
