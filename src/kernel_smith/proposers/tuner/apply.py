"""Writes other values into a source: the spans of what changes are replaced, the rest is kept."""

from __future__ import annotations

from kernel_smith.proposers.tuner.space import Space, Values


def apply(space: Space, values: Values) -> str:
    """Return the source with these values; what is not named keeps its own."""
    current = space.current
    wanted = current | values
    parts, at = [], 0
    for place in space.places:
        if all(wanted[name] == current[name] for name in place.names):
            continue
        parts += [space.source[at : place.begin], place.text(wanted)]
        at = place.end
    return "".join([*parts, space.source[at:]])
