"""The judge: evaluates candidates one after the other, and keeps the benches of recent tasks."""

from __future__ import annotations

from collections import OrderedDict

from kernel_smith.errors import InternalError
from kernel_smith.evaluation.judge.admission import admit
from kernel_smith.evaluation.judge.bench import Bench
from kernel_smith.evaluation.judge.child import Interrupted
from kernel_smith.evaluation.judge.nursery import Nursery, Place
from kernel_smith.evaluation.judge.session import Progress, Session
from kernel_smith.records import Admission, Candidate, Evaluation, Options, Task

_BENCHES_KEPT = 3
_ATTEMPTS = 3


class Judge:
    """Evaluates candidates one after the other. Owns the benches."""

    def __init__(self, nursery: Nursery, cores: tuple[int, ...] | None = None) -> None:
        self.place = Place.choose(cores)
        self.nursery = nursery
        self._benches: OrderedDict[tuple[str, int, frozenset[Admission]], Bench] = OrderedDict()

    def evaluate(
        self, task: Task, candidate: Candidate, options: Options, progress: Progress
    ) -> Evaluation:
        """One candidate's evaluation. Raises only for bad tasks, machines, and defects of ours."""
        problems: list[str] = []
        for _ in range(_ATTEMPTS):
            session = Session(
                self.nursery, self.place, self.bench, task, candidate, options, progress
            )
            try:
                return session.run()
            except Interrupted as interrupted:
                problems.append(str(interrupted))
            finally:
                session.close()
        raise InternalError("a trusted process failed in every attempt: " + "; ".join(problems))

    def bench(self, task: Task, options: Options) -> Bench:
        """The task made ready; admitted on first use."""
        key = (task.content_hash, options.seeds, frozenset(options.admit))
        if key in self._benches:
            self._benches.move_to_end(key)
            return self._benches[key]
        bench = Bench(task, self.nursery, self.place, options.seeds)
        try:
            admit(bench, options.admit)
        except BaseException:
            bench.close()
            raise
        self._benches[key] = bench
        while len(self._benches) > _BENCHES_KEPT:
            self._benches.popitem(last=False)[1].close()
        return bench

    def use_idle_time(self) -> bool:
        """Bury one dead child, or replace one used secret set; False when all is done."""
        if self.nursery.bury_one():
            return True
        return any(bench.redraw_one() for bench in self._benches.values())

    def close(self) -> None:
        for bench in self._benches.values():
            bench.close()
