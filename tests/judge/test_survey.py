"""Whether, and where, elements of a large answer are beyond their bounds, seen in few passes."""

from __future__ import annotations

import pytest
import torch

from kernel_smith.evaluation.judge.values import pieces
from kernel_smith.evaluation.judge.values.accuracy import Bounds, at_least_single
from kernel_smith.evaluation.judge.values.jumps import Jumps
from kernel_smith.evaluation.judge.values.survey import count_wrong, is_within, survey

DTYPES = [torch.float32, torch.float64, torch.bfloat16]


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("rtol", [1e-2, 1e-5])
@pytest.mark.parametrize("odd", [0.0, torch.nan, torch.inf, -torch.inf])
def test_a_quick_look_says_what_the_excess_of_each_element_does(
    dtype: torch.dtype, rtol: float, odd: float
) -> None:
    generator = torch.Generator().manual_seed(int(1 / rtol))
    seen = set()
    for exponent in range(2, 8):
        want = torch.randn(40, generator=generator).mul(10).to(dtype)
        noise = torch.randn(40, generator=generator, dtype=torch.float64) * 10.0**-exponent
        got = (want.double() * (1 + noise)).to(dtype)
        if odd:
            got[7] = odd
        bounds = Bounds([False], None, [rtol], [1.0])
        exact = at_least_single(want)
        allowed = exact.abs() * rtol + rtol
        right = bool(((got - exact).abs() <= allowed).all())
        assert is_within(got, want, bounds, 0) is right
        seen.add(right)
    assert False in seen or rtol > 1e-3
    assert True in seen or odd or dtype is torch.bfloat16


@pytest.mark.parametrize("shape", [(40,), (7, 6), (5, 9, 2), (3, 50), (1, 4)])
@pytest.mark.parametrize("jumps", [None, Jumps(0.05, 1.0)], ids=["", "jumps"])
@pytest.mark.parametrize("odd", [0.5, 100.0, torch.nan, torch.inf])
@pytest.mark.parametrize("share", [0.0, 0.03, 0.3, 1.0])
def test_a_count_says_what_a_survey_does(
    monkeypatch: pytest.MonkeyPatch,
    shape: tuple[int, ...],
    jumps: Jumps | None,
    odd: float,
    share: float,
) -> None:
    monkeypatch.setitem(pieces._PIECE, "cpu", 8)
    generator = torch.Generator().manual_seed(round(100 * share))
    want = torch.randn(shape, generator=generator)
    got = torch.where(torch.rand(shape, generator=generator) < share, want + odd, want)
    bounds = Bounds([False], None, [1e-3], [1.0], jumps=[jumps])
    found = survey(got, bounds, 0, [want])
    rows: set[int] = set()
    assert count_wrong(got, want, bounds, 0) == found.wrong
    assert count_wrong(got, want, bounds, 0, rows) == found.wrong
    allowed = bounds.of(0, want)
    assert allowed is not None
    beyond = ((got - want).abs() <= allowed).logical_not().reshape(shape[0], -1)
    expected = beyond.any(dim=1).nonzero().flatten().tolist() if found.wrong else []
    assert rows == set(expected)


def test_whole_numbers_are_counted_where_they_differ() -> None:
    want = torch.arange(60).view(20, 3)
    got = want.clone()
    got[4, 1] = got[7] = 100
    rows: set[int] = set()
    assert count_wrong(got, want, Bounds([True], None, [0.0], [0.0]), 0, rows) == 4
    assert rows == {4, 7}
