"""What is learnt of families of tasks: folds, and what a kind of edit gained in others."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from kernel_smith.proposers.chooser.policy import UNTRIED, edit_in, with_kind
from kernel_smith.training.choices.examples import Choice, Example

_DOUBT = 5.0  # tries that are needed to believe half of what they show


def deal(families: Iterable[str], folds: int, seed: int) -> list[list[str]]:
    """Return the families in as many parts, which depend on their names and the seed alone."""
    dealt = sorted(set(families))
    random.Random(seed).shuffle(dealt)
    return [dealt[first::folds] for first in range(folds)]


def splits(
    examples: Sequence[Example], folds: int, seed: int
) -> Iterator[tuple[list[Example], list[Example]]]:
    """Yield what to learn from and what to test on, each fold of families once."""
    for families in deal((each.family for each in examples), folds, seed):
        others = [each for each in examples if each.family not in families]
        own = [each for each in examples if each.family in families]
        if others and own:
            yield others, own


def kinds_in(examples: Iterable[Example]) -> dict[str, float]:
    """Return how much each kind of edit gained, as a logarithm, by the feature that names it."""
    gains: dict[str, list[float]] = defaultdict(list)
    for example in examples:
        for choice in example.choices:
            gains[edit_in(choice.features)].append(choice.reward)
    return {
        name: (sum(own) + _DOUBT * UNTRIED) / (len(own) + _DOUBT) for name, own in gains.items()
    }


def by_other_families(examples: Sequence[Example]) -> list[Example]:
    """Return the examples with what each kind gained in other families than their own.

    With their own the answer would be part of the question, as it never is in a new task.
    """
    kinds = {
        family: kinds_in(each for each in examples if each.family != family)
        for family in {each.family for each in examples}
    }
    return [_told(each, kinds[each.family]) for each in examples]


def told_kinds(examples: Iterable[Example], kinds: dict[str, float]) -> list[Example]:
    """Return the examples with what is known of each kind."""
    return [_told(each, kinds) for each in examples]


def _told(example: Example, kinds: dict[str, float]) -> Example:
    def told(choice: Choice) -> Choice:
        return replace(choice, features=with_kind(choice.features, kinds))

    return replace(example, choices=tuple(map(told, example.choices)))
