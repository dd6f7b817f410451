"""A compiler that takes too long: whatever it makes of being stopped, the reason is named."""

from __future__ import annotations

import time

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.proposers.seed.inside.patience import at_most


def wrapping() -> None:
    """As compilers do that catch everything."""
    try:
        time.sleep(5)
    except BaseException as error:
        raise ValueError("cannot be compiled") from error


def test_what_the_compiler_makes_of_being_stopped_is_not_the_reason() -> None:
    with pytest.raises(BadInput, match=r"needs more than 0\.001 minutes"), at_most(0.001):
        wrapping()


def test_other_failures_are_left_as_they_are() -> None:
    with pytest.raises(ValueError, match="a defect"), at_most(1):
        raise ValueError("a defect")
