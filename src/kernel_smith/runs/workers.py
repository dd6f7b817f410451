"""Who works on a run: the workers that its configuration names."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.backends import find_backend
from kernel_smith.evaluation.engines.base import Evaluator, Sweeper
from kernel_smith.proposers.base import InThreads, Recall, TryOut, Worker, recall_nothing
from kernel_smith.records import Candidate, RunConfig, Sweep, Task, Usage

if TYPE_CHECKING:
    from kernel_smith.proposers.chooser import Adviser

_SWEEP_SECONDS, _SWEEP_SHARE = 40.0, 0.1  # of what a run may take
_RACE_SHARE = 0.4  # with it goes whatever a run on a GPU begins with


@contextlib.contextmanager
def workers_of(
    config: RunConfig,
    spent: Usage | None = None,
    engine: Evaluator | None = None,
    recall: Recall = recall_nothing,
) -> Iterator[dict[str, Worker]]:
    """`spent` is what the run has taken from models so far: their caps count it. `engine`: for
    whoever has variants tried out before it proposes some. `recall`: for whoever is told that what
    it proposes is known."""
    made = {name: _make(name, config, spent, engine, recall) for name in config.proposers}
    try:
        yield made
    finally:
        for worker in made.values():
            worker.close()


def _make(
    name: str,
    config: RunConfig,
    spent: Usage | None,
    engine: Evaluator | None,
    recall: Recall,
) -> Worker:
    """Imported only where they are wanted: each brings libraries of its own."""
    if name == "tuner":
        from kernel_smith.proposers.tuner import Tuner

        tuner = Tuner(config.seed, try_out=_try_out(config, engine))
        return InThreads(tuner, config.proposals_in_flight)
    if name == "mutator":
        from kernel_smith.proposers.mutator import Mutator

        return InThreads(Mutator(config.seed), config.proposals_in_flight)
    if name == "chooser":
        return _chooser(config, spent)
    if name == "merger":
        from kernel_smith.proposers.merger import Merger

        return InThreads(Merger(), config.proposals_in_flight)
    if name == "model":
        from kernel_smith.proposers.model import ModelProposer, make_settings

        settings, budget = make_settings(config.settings.get("model", {})), config.budget
        return ModelProposer(
            settings, tokens=budget.tokens, dollars=budget.dollars, spent=spent, recall=recall
        )
    raise BadInput(
        f"no proposer is called {name!r}", hint="choose tuner, mutator, chooser, merger or model"
    )


def _chooser(config: RunConfig, spent: Usage | None) -> Worker:
    from kernel_smith.proposers.chooser import Chooser

    adviser = adviser_of(config, spent)
    chooser = Chooser(adviser, config.seed)
    return InThreads(chooser, config.proposals_in_flight, adviser.close)


def adviser_of(config: RunConfig, spent: Usage | None = None) -> Adviser:
    """Open what the chooser of a run draws from."""
    from kernel_smith.proposers.chooser import open_adviser
    from kernel_smith.proposers.model.ledger import Ledger

    ledger = Ledger(config.budget.tokens, config.budget.dollars, spent)
    return open_adviser(config.settings.get("chooser", {}).get("policy"), ledger)


def _try_out(config: RunConfig, engine: Evaluator | None) -> TryOut | None:
    """None where the engine cannot, or nobody wants it. On a GPU it takes somebody who asks for it:
    what it is worth there has not been measured."""
    usual = not find_backend(config.backend).gpu
    wanted = config.settings.get("tuner", {}).get("sweep", usual)
    return _sweeps(config, engine, _SWEEP_SHARE) if wanted else None


def race_of(config: RunConfig, engine: Evaluator) -> TryOut | None:
    """Tell how the compiler's programs for a GPU are compared before any of them is judged but
    the first; None where the engine cannot, or nothing would be timed. For a CPU there are too
    few."""
    is_gpu = find_backend(config.backend).gpu
    return _sweeps(config, engine, _RACE_SHARE) if is_gpu and not config.untimed else None


def _sweeps(config: RunConfig, engine: Evaluator | None, share: float) -> TryOut | None:
    """Sweeps that take no more than a share of what the run may take."""
    if not isinstance(engine, Sweeper):
        return None
    budget = config.budget
    limits = [limit for limit in (budget.seconds, budget.device_seconds) if limit is not None]
    seconds = min([_SWEEP_SECONDS, *(share * limit for limit in limits)])

    def try_out(task: Task, parent: Candidate, variants: Sequence[str]) -> Sweep:
        return engine.sweep(task, parent, variants, config.options, seconds).result()

    return try_out
