"""How much of the calls' time the library had, by samples that a test made up."""

from __future__ import annotations

from collections.abc import Callable

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.rejection import Rejected, Suspected
from kernel_smith.evaluation.judge.timing.library_share import (
    LibraryShare,
    check_library_share,
    check_settled,
)
from kernel_smith.records import KernelShare, Reason

LONG = 1e-3  # seconds per call, of which allocating takes a small share


def reason(check: Callable[[], None]) -> Reason | None:
    try:
        check()
    except Rejected as rejected:
        return rejected.reason if rejected.message else None
    return None


def shares(total: int = 1000, **origins: float) -> list[KernelShare]:
    def per(share: float) -> int:
        return round(share * total)

    return [
        KernelShare.model_validate(
            {"module": f"{origin}.so", "origin": origin, "share": share, "samples": per(share)}
        )
        for origin, share in origins.items()
    ]


@pytest.mark.parametrize(
    ("library", "seconds", "expected"),
    [
        (0.9, 1e-3, Reason.LIBRARY_FORBIDDEN),
        (0.2, 1e-3, Reason.LIBRARY_FORBIDDEN),
        # Allocating the output goes through the library: a small share, or a short time.
        (0.05, 1e-3, None),
        (0.5, 2e-5, None),
        (0.0, 1.0, None),
    ],
)
def test_library_time(library: float, seconds: float, expected: Reason | None) -> None:
    found = shares(authored=1 - library, library=library)
    assert reason(lambda: check_library_share(found, seconds)) is expected


def test_shares_of_several_libraries_add_up_and_come_with_the_verdict() -> None:
    found = [*shares(authored=0.8, library=0.08), *shares(library=0.12)]
    with pytest.raises(Rejected) as caught:
        check_library_share(found, 1e-3)
    assert caught.value.evidence["kernels"] == tuple(found)
    assert "20%" in caught.value.message


def test_time_in_the_interpreter_and_the_kernel_is_not_library_time() -> None:
    found = shares(authored=0.1, interpreter=0.5, kernel=0.2, runtime=0.2)
    assert reason(lambda: check_library_share(found, 1e-3)) is None


def test_the_bindings_of_the_library_are_not_its_arithmetic() -> None:
    """Many small tensors on a slow machine keep the bindings busy; that borrows no work."""
    glue = KernelShare(module="libtorch_python.so", origin="library", share=0.3, samples=300)
    assert reason(lambda: check_library_share([*shares(authored=0.7), glue], 1e-3)) is None
    copied = glue.model_copy(update={"origin": "unknown"})
    found = [*shares(authored=0.7), copied]
    assert reason(lambda: check_library_share(found, 1e-3)) is Reason.LIBRARY_FORBIDDEN


def counted(library: int, samples: int) -> list[KernelShare]:
    return shares(total=samples, library=library / samples, authored=1 - library / samples)


def verdict(found: list[KernelShare], seconds: float = LONG) -> Reason | None:
    """As after timing: what is surely too much is refused, what is not known is not accepted."""
    return reason(lambda: check_library_share(found, seconds)) or reason(
        lambda: check_settled(found, seconds)
    )


@pytest.mark.parametrize(("library", "samples"), [(8, 45), (34, 307), (15, 127), (0, 12), (0, 0)])
def test_too_few_samples_to_tell_are_neither_a_proof_nor_an_excuse(
    library: int, samples: int
) -> None:
    """Such shares came in beside busy programs, of one that leaves a part to the library."""
    found = counted(library, samples) if samples else []
    check_library_share(found, LONG)
    with pytest.raises(Suspected, match="too few to say") as caught:
        check_settled(found, LONG)
    assert caught.value.reason is Reason.TOO_NOISY


def test_a_short_time_of_the_librarys_needs_no_samples() -> None:
    assert verdict([], seconds=2e-5) is None
    assert verdict(counted(3, 4), seconds=2e-5) is None


def test_what_plenty_of_samples_leave_open_is_about_as_much_as_is_allowed() -> None:
    assert verdict(counted(165, 1500)) is None
    assert verdict(counted(190, 1500)) is Reason.LIBRARY_FORBIDDEN


fractions = st.floats(0, 1)
seconds_per_call = st.floats(1e-7, 10)


@given(fractions, st.integers(0, 5000), seconds_per_call)
def test_every_case_has_exactly_one_of_three_answers(
    share: float, samples: int, seconds: float
) -> None:
    found = LibraryShare.of(shares(total=samples, library=share) if samples else [], seconds)
    if found.is_too_large:
        assert found.is_settled
        assert found.share > found.allowed
    if found.is_settled and not found.is_too_large:
        assert found.allowed >= 1 or found.samples >= 1500 or found.share <= found.allowed


@given(fractions, st.integers(1, 5000), seconds_per_call)
def test_less_of_the_library_is_never_worse(share: float, samples: int, seconds: float) -> None:
    some, half = (
        LibraryShare.of(shares(total=samples, library=part), seconds) for part in (share, share / 2)
    )
    assert not half.is_too_large or some.is_too_large


def sampled(share: float, seed: int) -> LibraryShare:
    """Sample batches, eight samples each, until the question is settled."""
    rng = numpy.random.default_rng(seed)
    on_library = samples = 0
    while True:
        on_library += int(rng.binomial(8, share))
        samples += 8
        found = LibraryShare.of(counted(on_library, samples), LONG)
        if found.is_settled:
            return found


@pytest.mark.parametrize(
    ("share", "refused"), [(0.0, False), (0.02, False), (0.05, False), (0.2, True), (0.5, True)]
)
def test_sampling_on_finds_out(share: float, refused: bool) -> None:
    """Although it asks after each batch, and could be led astray by each of them."""
    found = [sampled(share, seed) for seed in range(300)]
    wrong = sum(each.is_too_large != refused for each in found)
    assert wrong <= 0.02 * len(found)
    assert numpy.median([each.samples for each in found]) <= 200
