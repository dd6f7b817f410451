"""A few elements on which a reference is far off, while it is precise on all others.

What is rounded to a grid, or compared with a threshold, lies on one side or the other by the last
bit of what goes in. There the reference differs from the oracle by a whole step. If that were its
error, anything within a step would be right everywhere. So a few elements may be off by as much,
about as many as the reference's own, and all others by no more than usual.
"""

from __future__ import annotations

import math
from typing import NamedTuple

_FEW_ELEMENTS = 8
_FEW_SHARE = 0.01
_TIMES_AS_MANY = 4.0  # as an error may be that much larger than the reference's


def is_few(elements: int, size: int) -> bool:
    """May so many elements of so many be far off by rounding alone?"""
    return elements <= max(_FEW_ELEMENTS, _FEW_SHARE * size)


class Jumps(NamedTuple):
    """Those of one output."""

    share: float  # of its elements, on which the reference jumps
    rtol: float  # what these may be off by

    def most(self, size: int) -> int:
        """How many of so many elements may be off so far."""
        return math.ceil(_TIMES_AS_MANY * self.share * size) + _FEW_ELEMENTS

    def beside_reference(self, factor: float) -> Jumps:
        """The same for a comparison with the reference's own answer, which jumps as well."""
        return Jumps(2 * self.share, factor * self.rtol)
