"""Where the edits apply to a candidate, and what comes of applying one there.

What the mutator draws from, and the options that the chooser is given, are these.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from kernel_smith.proposers.mutator.edit import Edit, Machine, Site
from kernel_smith.records import Candidate, Evaluation

Sites = dict[str, list[Site]]
"""Sites by the name of their edit."""

# Edits that split loops make a text longer, and more of the same does not make it faster.
_MOST_CHARACTERS = 24_000


@lru_cache(maxsize=32)
def all_sites(edits: tuple[Edit, ...], backend: str, source: str, machine: Machine) -> Sites:
    """Return the sites that a candidate offers. Not to be changed."""
    found = {edit.name: _found(edit, source, machine) for edit in edits if backend in edit.backends}
    return {name: sites for name, sites in found.items() if sites}


def machine_of(evaluation: Evaluation) -> Machine:
    """Return where the parent was timed: its children will be there, too."""
    cores = len(evaluation.timing.cores) if evaluation.timing is not None else None
    device = evaluation.device
    return Machine(cores or None, device.multiprocessors if device is not None else None)


def applied(candidate: Candidate, edit: Edit, site: Site) -> Candidate:
    """Return the candidate with an edit, at a site of its own."""
    return candidate.model_copy(update={"source": edit.apply(candidate.source, site)})


def is_of_use(parent: Candidate, child: Candidate) -> bool:
    """Tell whether something changed, and the text has not grown beyond measure."""
    most = max(_MOST_CHARACTERS, len(parent.source))
    return len(child.source) <= most and child.source != parent.source


def signature(steps: Iterable[tuple[str, Site]]) -> str:
    """Return what names a change of a parent, from the names of edits and their sites."""
    return " | ".join(f"{name} {site.part}: {site}" for name, site in steps)


def _found(edit: Edit, source: str, machine: Machine) -> list[Site]:
    try:
        return edit.sites(source, machine)
    except RecursionError:  # a text that is nested beyond reason
        return []
