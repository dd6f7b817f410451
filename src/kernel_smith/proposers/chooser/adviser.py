"""Who says how likely each option of a menu is to be drawn: numbers, or a language model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from kernel_smith.proposers.chooser.features import Facts, features_of
from kernel_smith.proposers.chooser.options import Menu
from kernel_smith.proposers.chooser.policy import Policy, read_policy
from kernel_smith.proposers.model.ledger import Ledger
from kernel_smith.records import Conversation, Evaluation


@dataclass(frozen=True)
class Advice:
    """The policy over a menu, in its order. `conversation`: with whoever was asked for it."""

    odds: Sequence[float]
    conversation: Conversation | None = None


class Adviser(Protocol):
    """Called from several threads at once."""

    def advise(self, menu: Menu, evaluation: Evaluation) -> Advice:
        """Return the odds of a menu's options; `evaluation` is the parent's.

        Raises `WorkerFailed` where there is no answer.
        """

    def check(self) -> None:
        """Raise `BadInput` if it could not advise, before a run relies on it."""

    def close(self) -> None:
        """Give up connections and processes."""


class ByNumbers:
    """A policy's file: weights or trees over the numbers of each option."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy

    def advise(self, menu: Menu, evaluation: Evaluation) -> Advice:
        return Advice(self._policy.probabilities(features_of(menu, Facts.of(evaluation))))

    def check(self) -> None:
        """Whoever was read is fit."""

    def close(self) -> None:
        """There is nothing to give up."""


def open_adviser(named: str | None, ledger: Ledger | None = None) -> Adviser:
    """Return who is named: None for the policy that is shipped, a policy's file, a model as
    NAME@BASE_URL, or a folder with a model or an adapter. Raises `BadInput` for what is none.

    `ledger` counts what a model behind an endpoint may cost.
    """
    if named is not None and "@http" in named:
        from kernel_smith.proposers.chooser.endpoint import AskedEndpoint
        from kernel_smith.proposers.model.config import parse_model

        return AskedEndpoint(parse_model(named), ledger or Ledger())
    if named is not None and Path(named).is_dir():
        from kernel_smith.proposers.chooser.local import AskedLocally

        return AskedLocally(Path(named))
    return ByNumbers(read_policy(named))
