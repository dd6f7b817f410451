"""The search over the values of one structure: what was tried, what it scored, what to try next.

Suggestions come from Optuna's tree-structured Parzen estimator, over positions in the sorted
domains, so that a step from 64 to 128 is as long as one from 128 to 256. Optuna may suggest the
same again; here nothing is suggested twice. Where it runs out of ideas, what is left is drawn.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from kernel_smith.proposers.tuner.meanings import Meanings
from kernel_smith.proposers.tuner.space import Value, Values

if TYPE_CHECKING:
    import optuna
    from optuna.distributions import BaseDistribution

Domains = dict[str, tuple[Value, ...]]
Key = tuple[tuple[str, Value], ...]
Accepts = Callable[[Values], bool]

# Before the estimator takes over, the surroundings of the first values are tried.
_FIRST_TRIALS = 6
_ASKS = 24
_ENUMERABLE = 20_000
_FEW = 512
_DRAWS = 500


class Search:
    def __init__(self, domains: Domains) -> None:
        self._domains = domains
        self._scores: dict[Key, float | None] = {}
        self._pending: dict[Key, int | None] = {}
        self._refused: set[Key] = set()
        self._queue: list[Values] = []
        self._hints: dict[Key, float] = {}
        self._promising: dict[Key, Values] = {}
        self._surpassed = 0.0
        self._meanings = Meanings()
        self.without_gain = 0
        self._study = self._new_study()

    @property
    def domains(self) -> Domains:
        return self._domains

    def widen(self, domains: Domains) -> None:
        """Allow more values. What is known stays known."""
        merged = {
            name: _ordered([*values, *domains.get(name, ())])
            for name, values in self._domains.items()
        }
        if merged == self._domains:
            return
        self._domains = merged
        self._study = self._new_study()
        self._pending = dict.fromkeys(self._pending)
        for key, score in self._scores.items():
            self._tell(dict(key), score)

    def enqueue(self, values: Values) -> None:
        """Try these before anything else."""
        self._queue.append(values)

    def enqueue_neighbours(self, values: Values, seed: int) -> None:
        """Begin with some of the values that are one step away in one number."""
        neighbours = []
        for name, domain in self._domains.items():
            at = domain.index(values[name])
            around = {at - 1, at + 1} if _is_ordered(domain) else set(range(len(domain))) - {at}
            neighbours += [
                values | {name: domain[position]}
                for position in sorted(around)
                if 0 <= position < len(domain)
            ]
        random.Random(seed).shuffle(neighbours)
        self._queue += neighbours[:_FIRST_TRIALS]

    def know(
        self,
        values: Values,
        score: float | None,
        *,
        most: float | None = None,
        wrong: bool = False,
    ) -> None:
        """What the values scored, or None if nothing can be said. The first word stands.

        `most`: what they may have scored, where the score is what is certain of it.
        `wrong`: the program ran, and its results were not right.
        """
        key = _key(values)
        if key in self._scores:
            return
        self.widen({name: (value,) for name, value in values.items()})
        self._scores[key] = score
        if score or wrong:
            self._meanings.know(values, right=not wrong)
        self._tell(values, score)
        # Above all that the last gain may have been: luck does not count as one.
        gained = score is not None and score > self._surpassed
        self.without_gain = 0 if gained else self.without_gain + 1
        if gained:
            self._surpassed = max(most or 0.0, score or 0.0)

    def enqueue_lines(self, most: int, seed: int) -> None:
        """Continue with values that differ in one number from the best that is known, those that
        are fewest steps away first."""
        best = self._best()
        lines = [
            (abs(position - domain.index(best[name])), best | {name: value})
            for name, domain in self._domains.items()
            for position, value in enumerate(domain)
        ]
        random.Random(seed).shuffle(lines)
        lines.sort(key=lambda line: line[0])
        self._queue += [values for _, values in lines if self._is_new(values)][:most]

    def hint(self, values: Values, score: float | None, *, wrong: bool = False) -> None:
        """What the values would score, as a sweep has it; None: it cannot say. Only `know` decides
        what they do score, but nobody need be asked about the poor ones."""
        key = _key(values)
        if key in self._hints or key in self._scores:
            return
        self._tell(values, score)
        if score is None:
            return
        self._hints[key] = score
        if score or wrong:
            self._meanings.know(values, right=not wrong)
        self.without_gain += 1

    def promise(self, values: Values) -> None:
        """Say that these are worth an evaluation, by what was hinted."""
        key = _key(values)
        if key not in self._promising:
            self._promising[key] = values
            self.without_gain = 0

    def next_promising(self) -> Values | None:
        """Return what was promised and not suggested yet; the first of it."""
        for key, values in self._promising.items():
            if key not in self._scores and key not in self._pending:
                self._pending[key] = None
                return values
        return None

    @property
    def best_score(self) -> float:
        """The highest that was scored or hinted."""
        return max([0.0, *(score or 0.0 for score in (self._hints | self._scores).values())])

    def _best(self) -> Values:
        known = self._hints | {key: score or 0.0 for key, score in self._scores.items()}
        best = max(known, key=known.__getitem__)
        return dict(best)

    def suggest(self, seed: int, accepts: Accepts) -> Values | None:
        """Values that were not suggested before, or None if there are none left."""
        accepted = self._with_meaning(accepts)
        queued = self._first_of(self._dequeue(), accepted)
        return queued or self._ask(seed, accepted) or self._draw(seed, accepted)

    def suggest_many(self, most: int, seed: int, accepts: Accepts) -> list[Values]:
        """The same, up to so many at once. Where there are few at all, the estimator would take
        long to name those that are left."""
        accepted, few = self._with_meaning(accepts), self._count() <= _FEW
        found: list[Values] = []
        for turn in range(most):
            values = self._first_of(self._dequeue(), accepted)
            if values is None and not few:
                values = self._ask(seed + turn, accepted)
            values = values or self._draw(seed, accepted)
            if values is None:
                break
            found.append(values)
        return found

    def _with_meaning(self, accepts: Accepts) -> Accepts:
        return lambda values: self._meanings.allow(values, self._domains) and accepts(values)

    def _dequeue(self) -> Iterator[Values]:
        while self._queue:
            yield self._queue.pop(0)

    def _ask(self, seed: int, accepts: Accepts) -> Values | None:
        self._study.sampler = _sampler(seed)
        for _ in range(_ASKS):
            trial = self._study.ask(self._distributions())
            values = self._values(trial.params)
            if not self._is_new(values):
                self._study.tell(trial, state=_failed())
            elif accepts(values):
                self._pending[_key(values)] = trial.number
                return values
            else:
                # A poor value, so that the estimator keeps away from there.
                self._study.tell(trial, 0.0)
                self._refused.add(_key(values))
        return None

    def _draw(self, seed: int, accepts: Accepts) -> Values | None:
        return self._first_of(self._leftovers(random.Random(seed)), accepts)

    def _first_of(self, some: Iterable[Values], accepts: Accepts) -> Values | None:
        """Return the first of these that is new and may be suggested; it counts as suggested
        then."""
        for values in some:
            if self._is_new(values) and accepts(values):
                self._pending[_key(values)] = None
                return values
        return None

    def _leftovers(self, generator: random.Random) -> Iterable[Values]:
        names = list(self._domains)
        if self._count() <= _ENUMERABLE:
            everything = list(itertools.product(*self._domains.values()))
            generator.shuffle(everything)
            return (dict(zip(names, values, strict=True)) for values in everything)
        return (
            {name: generator.choice(domain) for name, domain in self._domains.items()}
            for _ in range(_DRAWS)
        )

    def _count(self) -> int:
        return math.prod(len(domain) for domain in self._domains.values())

    def _is_new(self, values: Values) -> bool:
        key = _key(values)
        known = (self._scores, self._pending, self._refused, self._hints)
        return not any(key in some for some in known)

    def _tell(self, values: Values, score: float | None) -> None:
        number = self._pending.pop(_key(values), None)
        if number is not None:
            state = _failed() if score is None else None
            self._study.tell(number, score, state=state)
        elif score is not None:
            from optuna.trial import create_trial

            distributions = self._distributions()
            parameters = {
                name: self._domains[name].index(values[name])
                if _is_ordered(self._domains[name])
                else values[name]
                for name in self._domains
            }
            self._study.add_trial(
                create_trial(params=parameters, distributions=distributions, value=score)
            )

    def _values(self, parameters: dict[str, Any]) -> Values:
        return {
            name: domain[parameters[name]] if _is_ordered(domain) else parameters[name]
            for name, domain in self._domains.items()
        }

    def _distributions(self) -> dict[str, BaseDistribution]:
        from optuna.distributions import CategoricalDistribution, IntDistribution

        return {
            name: IntDistribution(0, len(domain) - 1)
            if _is_ordered(domain)
            else CategoricalDistribution(domain)
            for name, domain in self._domains.items()
        }

    def _new_study(self) -> optuna.Study:
        import optuna

        optuna.logging.set_verbosity(optuna.logging.WARNING)
        return optuna.create_study(direction="maximize", sampler=_sampler(0))


def _sampler(seed: int) -> optuna.samplers.BaseSampler:
    from optuna.samplers import TPESampler

    return TPESampler(
        n_startup_trials=_FIRST_TRIALS, multivariate=True, constant_liar=True, seed=seed
    )


def _failed() -> optuna.trial.TrialState:
    from optuna.trial import TrialState

    return TrialState.FAIL


def _key(values: Values) -> Key:
    return tuple(sorted(values.items()))


def _is_ordered(domain: tuple[Value, ...]) -> bool:
    return all(isinstance(value, int) for value in domain)


def _ordered(values: list[Value]) -> tuple[Value, ...]:
    once = tuple(dict.fromkeys(values))
    return tuple(sorted(once)) if _is_ordered(once) else once
