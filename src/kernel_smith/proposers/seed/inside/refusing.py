"""Turns what fails in a task's code, in the compiler or in a seed into a refusal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from kernel_smith.errors import UserError
from kernel_smith.proposers.seed.inside.data_dependent import decides_by_values
from kernel_smith.proposers.seed.inside.memory import short_of
from kernel_smith.proposers.seed.refusal import refused


@contextlib.contextmanager
def refusing(why: str) -> Iterator[None]:
    """Refuse the seed where something fails, but not for want of memory: that is nobody's fault."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        if short_of(error) is not None:
            raise
        raise decides_by_values(error) or refused(f"{why}: {brief(error)}") from None


def brief(error: Exception) -> str:
    """Give the first line of an error that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0][:200]}" if lines else type(error).__name__
