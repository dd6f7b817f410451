"""Numbers that mean something: whoever changes them gets another result, not another speed.

A constant may look like a block size and yet be part of what is computed: the length of the blocks
that a task quantises, the width of a wave. No name tells. But if results are wrong with a smaller
value and with a larger one, and were right with one value only, that is the one to keep.
"""

from __future__ import annotations

from kernel_smith.proposers.tuner.space import Value, Values


class Meanings:
    def __init__(self) -> None:
        self._right: list[Values] = []
        self._wrong: list[Values] = []

    def know(self, values: Values, *, right: bool) -> None:
        (self._right if right else self._wrong).append(values)

    def allow(self, values: Values, domains: dict[str, tuple[Value, ...]]) -> bool:
        """Does this leave the numbers alone that mean something?"""
        return not any(
            self._means_something(name, domain)
            for name, domain in domains.items()
            if all(values[name] != known[name] for known in self._right)
        )

    def _means_something(self, name: str, domain: tuple[Value, ...]) -> bool:
        kept = {known[name] for known in self._right}
        if len(kept) != 1:
            return False
        at = domain.index(kept.pop())
        blamed = {
            domain.index(wrong[name])
            for wrong in self._wrong
            if any(_differ_only_in(name, wrong, right) for right in self._right)
        }
        below = at == 0 or any(position < at for position in blamed)
        above = at == len(domain) - 1 or any(position > at for position in blamed)
        return bool(blamed) and below and above


def _differ_only_in(name: str, one: Values, other: Values) -> bool:
    return one[name] != other[name] and one | {name: other[name]} == other
