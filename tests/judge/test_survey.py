"""Whether every element of a large answer is within its bound, seen in few passes."""

from __future__ import annotations

import pytest
import torch

from kernel_smith.evaluation.judge.values.accuracy import Bounds, at_least_single
from kernel_smith.evaluation.judge.values.survey import is_within

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
