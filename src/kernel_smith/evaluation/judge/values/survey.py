"""One output against its right answer, element by element: how far off, where, and how many.

A survey goes through an output in pieces and keeps what is small: the largest excess, counts, and
the positions of elements that are off by more than allowed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch

from kernel_smith.evaluation.judge.values.accuracy import Bounds, Expected, at_least_single
from kernel_smith.evaluation.judge.values.pieces import pieces
from kernel_smith.records import ErrorBin

_EDGES = (0.01, 0.1, 0.5, 1.0, 10.0, 100.0)
_MOST_DOUBTFUL = 1 << 24  # elements per output; more are no matter of rounding


@dataclass(frozen=True)
class Survey:
    """An output's excess: error over allowed error, at most 1 where it is right."""

    size: int
    counts: torch.Tensor  # of elements that are right: how many came how close to the bound
    closest: float  # the largest excess among those
    doubtful: torch.Tensor  # positions, in logical order, of those beyond the bound
    excess: torch.Tensor  # of the doubtful ones
    overflow: int = 0  # doubtful ones whose positions are not kept

    @property
    def wrong(self) -> int:
        return int((self.excess > 1).sum()) + self.overflow

    @property
    def peak(self) -> float:
        """The largest excess of all."""
        return max(self.closest, float(self.excess.max()) if self.excess.numel() else 0.0)

    def accepting(self, excess: torch.Tensor) -> Survey:
        """The same where another answer is right, too, which the doubtful ones exceed so far."""
        return replace(self, excess=torch.minimum(self.excess, excess))


def survey(
    got: torch.Tensor, bounds: Bounds, output: int, answers: Sequence[torch.Tensor]
) -> Survey:
    """Compare one output with the nearest of several right answers, the oracle's coming first."""
    counts = torch.zeros(len(_EDGES) + 1, dtype=torch.int64, device=got.device)
    positions: list[torch.Tensor] = []
    excesses = [counts.new_empty(0, dtype=torch.float64)]
    room, overflow, closest = _MOST_DOUBTFUL, 0, 0.0
    for offset, (part, *wanted) in pieces(got, *answers):
        ratio = _nearest(part, wanted, bounds, output).flatten()
        largest = float(ratio.max()) if ratio.numel() else 0.0
        if largest > 1:
            wrong = (ratio > 1).nonzero().flatten()
            overflow += max(0, wrong.numel() - room)
            wrong = wrong[:room]
            room -= wrong.numel()
            positions.append(wrong + offset)
            excesses.append(ratio[wrong].double())
            ratio = ratio[ratio <= 1]
            largest = float(ratio.max()) if ratio.numel() else 0.0
        closest = max(closest, largest)
        counts += _counted(ratio)
    doubtful = torch.cat([counts.new_empty(0), *positions])
    found = Survey(got.numel(), counts, closest, doubtful, torch.cat(excesses), overflow)
    return _sparing_jumps(found, bounds, output)


def _sparing_jumps(found: Survey, bounds: Bounds, output: int) -> Survey:
    """Accept that a few elements are off by as much as the reference is on a few."""
    if found.overflow or not found.wrong:
        return found
    if not _are_jumps(found.wrong, float(found.excess.max()), found.size, bounds, output):
        return found
    return found.accepting(torch.ones_like(found.excess))


def _are_jumps(wrong: int, largest: float, size: int, bounds: Bounds, output: int) -> bool:
    """Are there as few, and as near, as those on which the reference jumps? By largest excess."""
    jumps = bounds.jumps_of(output)
    if jumps is None or wrong > min(jumps.most(size), _MOST_DOUBTFUL):
        return False
    return largest * bounds.rtols[output] <= jumps.rtol


def count_wrong(
    got: torch.Tensor,
    want: torch.Tensor,
    bounds: Bounds,
    output: int,
    rows: set[int] | None = None,
) -> int:
    """Count the elements beyond their bounds, as a survey does that lists nothing: their places
    would take several times the memory of an answer that is wrong everywhere.

    `rows`: where to put the rows that they lie in.
    """
    if is_near(got, want, bounds, output):
        return 0
    wrong, largest, seen = 0, 0.0, set()
    per_row = got.numel() // got.shape[0] if rows is not None else 0
    for offset, (part, exact) in pieces(got, want):
        if _is_within(part, exact, bounds, output):
            continue
        ratio = _nearest(part, [exact], bounds, output)
        far = ratio > 1
        largest = max(largest, float(ratio.max()))
        wrong += int(far.sum())
        if rows is not None:
            seen |= _rows_in(far, offset, per_row)
    if _are_jumps(wrong, largest, got.numel(), bounds, output):
        return 0
    if rows is not None:
        rows |= seen
    return wrong


def _rows_in(far: torch.Tensor, offset: int, per_row: int) -> set[int]:
    """Rows with any such element, of a piece that is some whole rows, or a part of one."""
    first = offset // per_row
    if far.numel() <= per_row:
        return {first} if bool(far.any()) else set()
    found = far.reshape(-1, per_row).any(dim=1).nonzero().flatten()
    return {first + row for row in found.tolist()}


def is_within(got: torch.Tensor, want: torch.Tensor, bounds: Bounds, output: int) -> bool:
    """Is every element within its bound? In half the passes that the excess of each takes."""
    return is_near(got, want, bounds, output) or all(
        _is_within(a, b, bounds, output) for _, (a, b) in pieces(got, want)
    )


def is_near(got: torch.Tensor, want: torch.Tensor, bounds: Bounds, output: int) -> bool:
    """Is nothing off by more than any element may be? Mostly so, and it takes half the time to see.
    A GPU is asked once, when it has gone through all pieces."""
    if bounds.exact[output] or not got.numel():
        return False
    _, atol = bounds.coefficients(output)
    extremes = [
        torch.stack(torch.aminmax(torch.sub(part, at_least_single(exact))))
        for _, (part, exact) in pieces(got, want)
    ]
    low, high = torch.stack(extremes).unbind(dim=1)
    return -atol <= float(low.amin()) and float(high.amax()) <= atol  # false for NaN


def _is_within(part: torch.Tensor, want: torch.Tensor, bounds: Bounds, output: int) -> bool:
    if bounds.exact[output]:
        return torch.equal(part, want)
    rtol, atol = bounds.coefficients(output)
    want = at_least_single(want)
    off = torch.sub(part, want).abs_()
    if not off.numel():
        return True
    off.sub_(want.abs(), alpha=rtol)
    return float(off.max()) <= atol


def excess_at(
    found: Survey, got: torch.Tensor, answer: torch.Tensor, expected: Expected, output: int
) -> torch.Tensor:
    """The excess of the doubtful elements over another right answer."""
    want = torch.take(answer, found.doubtful)
    bound = expected.bounds.of(
        output, at_least_single(torch.take(expected.oracle[output], found.doubtful))
    )
    return excess(torch.take(got, found.doubtful), at_least_single(want), bound)


def excess(got: torch.Tensor, want: torch.Tensor, allowed: torch.Tensor | None) -> torch.Tensor:
    """Error over allowed error, per element; at most 1 is right, not finite counts as infinite."""
    if allowed is None:
        return torch.where(got == want, 0.0, float("inf")).double()
    ratio = torch.sub(got, want).abs_().div_(allowed)  # in the oracle's precision
    if not ratio.numel() or float(ratio.max()) <= 1:  # false for NaN
        return ratio
    same = (got == want) | (got.isnan() & want.isnan())
    return torch.where(same, 0.0, torch.where(ratio.isnan(), float("inf"), ratio))


def histogram(surveys: Sequence[Survey]) -> tuple[ErrorBin, ...]:
    """How many elements had which share of the allowed error."""
    if not surveys:
        return ()
    counts = torch.stack([s.counts + _counted(s.excess) for s in surveys]).sum(0)
    counts[-1] += sum(s.overflow for s in surveys)
    bounds: list[float | None] = [*_EDGES, None]
    return tuple(
        ErrorBin(up_to=bound, elements=int(count))
        for bound, count in zip(bounds, counts, strict=True)
    )


def _counted(ratio: torch.Tensor) -> torch.Tensor:
    edges = torch.tensor(_EDGES, dtype=torch.float64, device=ratio.device)
    return torch.bincount(torch.bucketize(ratio.double(), edges), minlength=len(_EDGES) + 1)


def _nearest(
    part: torch.Tensor, wanted: Sequence[torch.Tensor], bounds: Bounds, output: int
) -> torch.Tensor:
    """The excess over the nearest of several right answers, the oracle's coming first."""
    bound = bounds.of(output, at_least_single(wanted[0]))
    ratios = [excess(part, at_least_single(want), bound) for want in wanted]
    lowest = ratios[0]
    for ratio in ratios[1:]:
        lowest = torch.minimum(lowest, ratio)
    return lowest
