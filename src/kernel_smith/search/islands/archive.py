"""The population of a run: islands of cells.

`Archive` does no input or output, and draws at random only from generators that it is given. Its
state is the result of the calls of `add`, `update` and `note_child`, in their order, so that a run
which is resumed rebuilds it exactly. It is not safe to change from several threads.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from random import Random

from kernel_smith.errors import BadInput
from kernel_smith.programs.normalise import fingerprint
from kernel_smith.records import Elite, Evaluation, Interval, RunConfig, Stage, score
from kernel_smith.search.islands.cells import Member
from kernel_smith.search.islands.features import CellKey, features_named
from kernel_smith.search.islands.island import Island
from kernel_smith.search.islands.outcome import Added, Outcome
from kernel_smith.search.islands.sampling import exploited, explored, pick_exemplars

_UNTIMED = Interval(value=1.0, low=1.0, high=1.0)  # the same for all


@dataclass(frozen=True)
class ArchiveConfig:
    islands: int = 3
    elites_per_cell: int = 2
    features: tuple[str, ...] = ("complexity", "technique")
    exploration: float = 0.2
    """The share of parents that are drawn from any cell, whatever their speed."""
    greed: float = 4.0
    """A parent twice as fast is drawn 2 ** greed times as often."""
    untimed: bool = False
    """Also take programs that are correct, but could not be timed: none of them is the faster."""

    def __post_init__(self) -> None:
        for name, least in (("islands", 1), ("elites_per_cell", 1), ("greed", 0)):
            if getattr(self, name) < least:
                raise BadInput(
                    f"{name} is {getattr(self, name)}", hint=f"{name} must be at least {least}"
                )
        if not 0 <= self.exploration <= 1:
            raise BadInput(
                f"exploration is {self.exploration}", hint="exploration is a share, from 0 to 1"
            )
        features_named(self.features)

    @classmethod
    def of(cls, run: RunConfig) -> ArchiveConfig:
        return cls(run.islands, run.elites_per_cell, run.features, untimed=run.untimed)


@dataclass(frozen=True)
class Migration:
    """One elite that is to visit another island."""

    candidate: str
    source: int
    target: int


class Archive:
    def __init__(self, config: ArchiveConfig) -> None:
        self.config = config
        self._features = features_named(config.features)
        self._islands = [Island(config.elites_per_cell) for _ in range(config.islands)]
        self._born: dict[str, int] = {}
        self._children: Counter[str] = Counter()
        self._best: Member | None = None

    def __len__(self) -> int:
        """Tell how many programs it holds; one that lives on several islands is one."""
        return len({member.key for member in self._members()})

    def __contains__(self, candidate: str) -> bool:
        return self.get(candidate) is not None

    def get(self, candidate: str) -> Elite | None:
        """Return the elite with this content hash."""
        found = self._member(candidate)
        return found.elite if found else None

    # What changes it

    def add(self, elite: Elite, island: int) -> Added:
        """Offer a program to an island. One that failed is rejected, and usually one that was not
        timed.

        A program that is on another island already keeps the evaluation that it has there.
        """
        speedup = self._speedup(elite.evaluation)
        if speedup is None:
            return Added(Outcome.REJECTED, island)
        key = elite.candidate.content_hash
        born = self._born.setdefault(key, len(self._born))
        program = fingerprint(elite.candidate)
        newcomer = Member(elite, key, program, born, self.cell_of(elite), speedup)
        return self._admit(self._member(key) or newcomer, island)

    def update(self, candidate: str, evaluation: Evaluation) -> bool:
        """A program was measured again: its rank, and even its cell, may change.

        If it failed this time, it is removed. A measurement that was too noisy says nothing, and
        changes nothing. Returns whether the program is still in the archive.
        """
        speedup = self._speedup(evaluation)
        for island in self._islands if evaluation.stage is not Stage.UNSTABLE else []:
            known = island.get(candidate)
            if known is None:
                continue
            if speedup is None:
                island.remove(candidate)
                continue
            elite = Elite(candidate=known.elite.candidate, evaluation=evaluation)
            island.update(replace(known, elite=elite, cell=self.cell_of(elite), speedup=speedup))
        self._rank()
        return candidate in self

    def note_child(self, parent: str) -> None:
        """Count that a program was made from this one, which makes it a less likely parent."""
        self._children[parent] += 1

    # What it holds

    @property
    def best(self) -> Elite | None:
        """The elite with the highest certain speedup."""
        return self._best.elite if self._best else None

    def elites(self, island: int | None = None) -> tuple[Elite, ...]:
        """Return each program once, the best first; of one island or of all."""
        return tuple(member.elite for member in self._ranked(island))

    def cells(self, island: int) -> dict[CellKey, tuple[Elite, ...]]:
        """The elites of each cell of an island, the best first."""
        return {
            key: tuple(member.elite for member in members)
            for key, members in self._islands[island].cells.items()
        }

    def cell_of(self, elite: Elite) -> CellKey:
        return tuple(feature.of(elite) for feature in self._features)

    # What is drawn from it

    def sample_parent(self, island: int, rng: Random) -> Elite:
        """Return a member of the island; of any island while this one is empty."""
        home = self._islands[island]
        members = home.members or tuple(self._members())
        if not members:
            raise LookupError("the archive is empty: add a program first")
        if home.members and rng.random() < self.config.exploration:
            return explored(home.cells, rng).elite
        return exploited(members, self._children, self.config.greed, rng).elite

    def exemplars(
        self, parent: Elite, count: int, rng: Random, island: int | None = None
    ) -> tuple[Elite, ...]:
        """Programs to show beside a parent: the top of its island, and others unlike those.

        Fewer than `count` where there are no more that differ. `island`: where the parent was
        drawn; otherwise the first one that it lives on.
        """
        key = parent.candidate.content_hash
        homes = [index for index, home in enumerate(self._islands) if home.get(key)]
        home = island if island is not None else next(iter(homes), 0)
        chosen = pick_exemplars(
            self._islands[home].cells, self._ranked(), parent.candidate, count, rng
        )
        return tuple(member.elite for member in chosen)

    def migrants(self) -> tuple[Migration, ...]:
        """Who should visit whom: the best of each island the next one, in a ring.

        To carry it out, `add` each to its target. It stays at home, too, unless another visitor
        displaces it there.
        """
        plan = []
        for source, island in enumerate(self._islands):
            target = (source + 1) % len(self._islands)
            best = island.best
            if best and not self._islands[target].has_program(best.program):
                plan.append(Migration(best.key, source, target))
        return tuple(plan)

    def _admit(self, member: Member, index: int) -> Added:
        former = self._best
        outcome, displaced = self._islands[index].add(member)
        self._rank()
        if outcome is Outcome.ISLAND_BEST and (former is None or member.rank < former.rank):
            outcome = Outcome.RUN_BEST
        return Added(outcome, index, member.cell, displaced.elite if displaced else None)

    def _member(self, key: str) -> Member | None:
        return next(filter(None, (island.get(key) for island in self._islands)), None)

    def _rank(self) -> None:
        bests = [island.best for island in self._islands if island.best]
        self._best = min(bests, key=lambda member: member.rank, default=None)

    def _members(self) -> Iterator[Member]:
        for island in self._islands:
            yield from island.members

    def _ranked(self, island: int | None = None) -> list[Member]:
        source = self._members() if island is None else self._islands[island].members
        unique = {member.key: member for member in source}
        return sorted(unique.values(), key=lambda member: member.rank)

    def _speedup(self, evaluation: Evaluation) -> Interval | None:
        """None if the program has no place here: nothing about its speed is certain."""
        if self.config.untimed and evaluation.ok and evaluation.untimed:
            return _UNTIMED
        return evaluation.timing.speedup if score(evaluation) > 0 and evaluation.timing else None
