"""`parse_python`: Python's own, without a word, also where several threads parse at once."""

from __future__ import annotations

import ast
import threading
import warnings

_TRIES = 5
# Filters of warnings belong to the whole process: two threads must not change them at once.
_FILTERS = threading.Lock()


def parse_python(source: str) -> ast.Module:
    """Read a program. Raises what `ast.parse` does for one that is no Python.

    A careless escape sequence in somebody's text is no concern of ours, so nothing warns of it.

    Up to some version of Python 3.11 the parser counts how deep it is for all threads together
    (gh-106905). Where one takes over in the midst of another, that one ends with a `SystemError`
    though nothing is wrong, and the next try succeeds.
    """
    with _FILTERS, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for _ in range(_TRIES - 1):
            try:
                return ast.parse(source)
            except SystemError:
                continue
        return ast.parse(source)
