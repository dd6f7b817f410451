"""A policy over the options at a program, read from a small JSON file: no numpy, no torch.

Two kinds: trees whose leaves are added up (the gain that is expected, as a logarithm), and weights
of numbers and of pairs of them. Either gives every option a score, and is drawn from by a softmax.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator

from kernel_smith.errors import BadInput, reason_of
from kernel_smith.proposers.chooser.features import WHOLE, Features
from kernel_smith.records import VersionedRecord

_SHIPPED = Path(__file__).with_name("policy.json")

Tree = Any
"""A number, or [feature, threshold, tree up to the threshold, tree above]."""

KIND, ANY = "kind", "any"
UNTRIED = 0.02  # the logarithm of a gain that is expected of an edit that was never tried


class Policy(VersionedRecord):
    """Scores for options. `about`: where it comes from, in a sentence."""

    kind: Literal["trees", "weights"]
    about: str = ""
    temperature: float = Field(default=1.0, gt=0)
    kinds: dict[str, Annotated[float, Field(gt=0)]] = Field(
        default_factory=dict,
        description="feature of an edit -> the logarithm of what it gained elsewhere, on average",
    )
    trees: tuple[Tree, ...] = ()
    weights: dict[str, float] = Field(default_factory=dict)

    @field_validator("trees")
    @classmethod
    def _are_trees(cls, trees: tuple[Tree, ...]) -> tuple[Tree, ...]:
        if not all(map(_is_tree, trees)):
            raise ValueError("expected numbers and [feature, threshold, tree, tree]")
        return trees

    def scores(self, options: Sequence[Features]) -> list[float]:
        """Return a number for each option: the higher, the better."""
        known = [with_kind(each, self.kinds) for each in options]
        if self.kind == "trees":
            return [sum(_leaf(tree, each) for tree in self.trees) for each in known]
        return [
            sum(self.weights.get(name, 0.0) * value for name, value in crossed(each).items())
            for each in known
        ]

    def probabilities(self, options: Sequence[Features]) -> list[float]:
        """Return the policy itself."""
        scores = self.scores(options)
        most = max(scores, default=0.0)
        powers = [math.exp((score - most) / self.temperature) for score in scores]
        total = sum(powers)
        return [power / total for power in powers]


def with_kind(features: Features, kinds: Mapping[str, float]) -> Features:
    """Return the numbers, and what is known of this kind of edit from other programs."""
    return features | {KIND: math.log(kinds.get(edit_in(features), UNTRIED))}


def crossed(features: Features) -> Features:
    """Return what is known of the kind, and the numbers of the place: for this kind alone, and for
    any kind (`ANY`).

    What is the same for all options of a program says nothing about which of them to choose.
    """
    edit = edit_in(features)
    own = {name: value for name, value in features.items() if name not in (edit, KIND)}
    place = {f"{ANY} {name}": own[name] for name in own if not name.startswith(WHOLE)}
    return {f"{edit} {name}": own[name] for name in own} | place | {edit: 1.0, KIND: features[KIND]}


def edit_in(features: Features) -> str:
    """Return the feature that names the kind of edit."""
    return next(name for name in features if name.startswith("edit="))


def read_policy(file: str | Path | None = None) -> Policy:
    """Read a policy's file; None: the one that is shipped. Raises `BadInput` where it is none."""
    path = Path(file) if file is not None else _SHIPPED
    try:
        return Policy.model_validate(json.loads(path.read_text("utf-8")))
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        what = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    except (OSError, ValueError) as error:
        what = reason_of(error)
    raise BadInput(
        f"{path}: cannot be read as a policy ({what})",
        hint="name a file that `benchmarks/choices.py --policy FILE` has written",
    )


def _is_tree(tree: object) -> bool:
    match tree:
        case [str(), int() | float(), low, high]:
            return _is_tree(low) and _is_tree(high)
    return isinstance(tree, int | float)


def _leaf(tree: Tree, features: Features) -> float:
    while isinstance(tree, list | tuple):
        name, threshold, low, high = tree
        tree = low if features.get(name, 0.0) <= threshold else high
    return float(tree)
