"""What Hypothesis finds out by itself in each new checkout, which takes seconds of every worker."""

from __future__ import annotations

import pytest
from hypothesis.internal import charmap
from hypothesis.internal.conjecture import providers
from hypothesis.internal.constants_ast import Constants
from hypothesis.internal.intervalsets import IntervalSet

_SURROGATES = (0xD800, 0xDFFF)
_LAST = 0x10FFFF

_patch = pytest.MonkeyPatch()
_find_out = charmap.intervals_from_codec


def know_utf_8() -> None:
    """Say which characters have a code in UTF-8, which it would try with all of them."""
    some = IntervalSet(((0, _SURROGATES[0] - 1), (_SURROGATES[1] + 1, _LAST)))
    found = {"utf-8": (some, IntervalSet(()))}
    _patch.setattr(charmap, "intervals_from_codec", lambda name: found.get(name) or _find_out(name))


def try_no_constants() -> None:
    """Draw no numbers and texts that stand in whatever modules are imported by then.

    They make examples other ones in each worker, though the seed is the same.
    """
    _patch.setattr(providers, "_get_local_constants", Constants, raising=False)
