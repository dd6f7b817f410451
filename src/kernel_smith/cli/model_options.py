"""The models that a command line names: do they answer, and did they give anything?"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kernel_smith.cli.output import progress
from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.records import RunConfig, Usage

if TYPE_CHECKING:
    from kernel_smith.runs.state import RunState


def model_settings(named: list[str] | None, file: Path | None) -> dict[str, Any] | None:
    """Return the models of the command line, or those of a file; None if there are none."""
    if named is None and file is None:
        return None
    from kernel_smith.proposers.model import make_settings, parse_model, read_settings

    if named is not None and file is not None:
        raise BadInput("--model and --models together", hint="name all models in the file")
    if file is not None:
        return read_settings(file).model_dump(mode="json")
    models = [parse_model(text).model_dump(mode="json") for text in named or ()]
    return make_settings({"models": models}).model_dump(mode="json")


def check_models(settings: dict[str, Any] | None, *, capped: bool = False, quiet: bool) -> None:
    """Ask each model of the settings one question. Raises `BadInput` if one does not answer, or if
    dollars are `capped` and a price is not known."""
    if settings is None:
        return
    from kernel_smith.proposers.model import check_models, demand_prices, make_settings

    made = make_settings(settings)
    if capped:
        demand_prices(made)
    with progress(quiet) as report:
        report("asking each model one question, to see that it answers")
        check_models(made)


def check_chooser(config: RunConfig, *, quiet: bool) -> None:
    """Ask what the chooser of a run draws from, if it has one, whether it can be drawn from."""
    if "chooser" not in config.proposers:
        return
    from kernel_smith.runs.workers import adviser_of

    with progress(quiet) as report, contextlib.closing(adviser_of(config)) as adviser:
        report("asking the chooser's policy, to see that it answers")
        adviser.check()


class ModelTally:
    """Counts, over one run or many, whether models gave anything that was asked of them."""

    def __init__(self) -> None:
        self._gave_something = False
        self._in_vain = Usage()
        self._last_failure: str | None = None

    def note(self, state: RunState) -> None:
        """Take in what models gave in a run, as far as it has come."""
        self._gave_something |= state.by_proposer["model"] > 0
        if state.gave_nothing("model"):
            self._in_vain += state.usage
            self._last_failure = state.last_drop["model"]

    def check(self, where: str, remedy: str) -> None:
        """Raise `MissingPrerequisite` if models were asked and none gave a program anywhere."""
        from kernel_smith.proposers.model.patience import in_words

        if self._last_failure is not None and not self._gave_something:
            raise MissingPrerequisite(
                f"no model gave a new program in this {where} ({in_words(self._in_vain)}); "
                f"at last: {self._last_failure}",
                hint=f"fix that and {remedy}, or start a {where} with another model",
            )


def models_that_failed(state: RunState, again: str) -> None:
    """Raise `MissingPrerequisite` if models were asked and none gave a program in all of a run."""
    tally = ModelTally()
    tally.note(state)
    tally.check("run", f"go on ({again})")
