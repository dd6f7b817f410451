"""What an agent can have done: tasks read, programs judged, runs begun, asked and told.

One evaluation at a time, and so many in a session: whoever drives this may be in a loop.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from kernel_smith.agents import answers
from kernel_smith.agents.long_work import LongWork
from kernel_smith.errors import BadInput, UserError
from kernel_smith.evaluation.backends import find_backend
from kernel_smith.evaluation.engines.base import Evaluator
from kernel_smith.programs.files import make_candidate, read_candidate
from kernel_smith.records import Candidate, Options, Task
from kernel_smith.records.options import Baseline
from kernel_smith.records.prose import headline
from kernel_smith.runs.config import configure, own_starts
from kernel_smith.runs.outside import assign, step_of, tell
from kernel_smith.runs.run import Run, fold, replay
from kernel_smith.runs.state import Step
from kernel_smith.store import Store
from kernel_smith.tasks import builtin_tasks, find_task

if TYPE_CHECKING:
    from kernel_smith.agents.benchmark import Wanted

_FIRST = "the program that the run starts from"

Opener = Callable[[], AbstractContextManager[Evaluator]]


class LimitReached(UserError):
    """The session has had all that it was given."""


class Door:
    """Everything behind the tools. Methods block; several threads may call them."""

    def __init__(self, store: Path, open_engine: Opener, evaluations: int) -> None:
        self._store = store
        self._open_engine = open_engine
        self._evaluations = evaluations
        self._left = evaluations
        self._engine: Evaluator | None = None
        self._stack = ExitStack()
        self._busy = threading.Lock()

    def close(self) -> None:
        self._stack.close()

    # ------------------------------------------------------------ tasks and knowledge

    def tasks(self, suite: str) -> answers.Tasks:
        return answers.Tasks(tasks=[answers.TaskLine.of(task) for task in builtin_tasks(suite)])

    def task(self, name: str) -> answers.TaskText:
        found = find_task(name)
        starts = {backend: own_starts(found, backend)[0].source for backend in found.starts}
        return answers.TaskText(
            task=answers.TaskLine.of(found), reference=found.source, starts=starts
        )

    def knowledge(self, topic: str | None, task: str | None, backend: str) -> answers.Advice:
        from kernel_smith.knowledge import all_guides, find_topic, sections_for, this_machine

        if task is not None:
            find_backend(backend)
            chosen = sections_for(find_task(task), backend, this_machine())
            return answers.Advice(sections=[section.markdown for section in chosen])
        if topic is not None:
            return answers.Advice(sections=[find_topic(topic).markdown])
        lines = [f"{guide.topic}: {guide.title}" for guide in all_guides()]
        return answers.Advice(sections=lines)

    def bench_report(self, folder: str) -> answers.Report:
        from kernel_smith.bench.folder import read_result
        from kernel_smith.bench.report import markdown
        from kernel_smith.bench.scores import boards

        result = read_result(Path(folder))
        scored = boards(result.rows, result.stamp.refused)
        return answers.Report(text=markdown(result, scored))

    def bench(self, wanted: Wanted, work: LongWork) -> answers.Benched:
        """Solve problems until they are done, or the time or the session's evaluations are over."""
        from kernel_smith.agents.benchmark import run_benchmark

        find_backend(wanted.backend)
        with self._alone() as engine:
            done, evaluations = run_benchmark(wanted, engine, self._left, work)
            self._left -= evaluations
            return done.model_copy(update={"evaluations_left": self._left})

    # ------------------------------------------------------------ judging

    def evaluate(
        self,
        task: str,
        source: str | None,
        file: str | None,
        backend: str,
        baselines: tuple[Baseline, ...],
    ) -> answers.Verdict:
        find_backend(backend)
        found, program = find_task(task), _program(source, file, backend)
        options = Options(baselines=baselines)
        with self._judge() as engine:
            return answers.Verdict.of(engine.submit(found, program, options).result())

    # ------------------------------------------------------------ runs

    def begin(self, task: str, backend: str, source: str | None, file: str | None) -> answers.Begun:
        """Begin a run with a program, or with the task's own starting kernel, if it has one."""
        find_backend(backend)
        found = find_task(task)
        first = _first(found, backend, source, file)
        config = configure(found, backend, proposers=["mutator", "tuner"], starts=[first])
        with (
            self._judge() as engine,
            Store.open(self._store, create=True) as book,
            Run.start(book, found, config) as run,
        ):
            told = tell(run, first, engine, None, _FIRST)
            return answers.Begun(
                run=run.state.run,
                task=found.name,
                backend=backend,
                step=told.step,
                verdict=answers.Verdict.of(told.counts),
            )

    def ask(self, run: str, *, best: bool, parent: str | None, brief: bool) -> answers.Asked:
        with Store.open(self._store) as book:
            state, strategy = replay(book, book.find_run(run))
        given = assign(state, strategy, best=best, parent=parent)
        request = given.request
        assert request.parent is not None
        return answers.Asked(
            run=given.run,
            parent_step=given.parent_step,
            program=request.parent.candidate.source,
            verdict=answers.Verdict.of(request.parent.evaluation),
            hardware=request.hardware,
            failures=[
                f"{each.summary}: {each.stage.value}: {each.reason.value} {each.message}".strip()
                for each in request.failures
            ],
            lessons=list(request.lessons),
            rules=None if brief else given.rules,
            dialect=None if brief else given.dialect,
            reference=None if brief else given.reference,
        )

    def tell(
        self, run: str, source: str | None, file: str | None, parent: str | None, summary: str
    ) -> answers.ToldAnswer:
        with (
            Store.open(self._store) as book,
            Run.open(book, book.find_run(run)) as opened,
        ):
            program = _program(source, file, opened.state.config.backend)
            with self._judge() as engine:
                told = tell(opened, program, engine, parent, summary)
        return answers.ToldAnswer(
            step=told.step,
            verdict=answers.Verdict.of(told.counts),
            measured_again=[
                answers.Again(step=each.step, verdict=answers.Verdict.of(each.evaluation))
                for each in told.measured_again
            ],
            is_best=told.best_step == told.step,
            best_step=told.best_step,
            evaluations_left=self._left,
        )

    def runs(self, limit: int) -> answers.Runs:
        if not self._store.exists():
            return answers.Runs(runs=[])
        with Store.open(self._store) as book:
            summaries = book.runs()[:limit]
        return answers.Runs(
            runs=[
                answers.RunLine(
                    run=each.id,
                    task=each.task,
                    backend=each.backend,
                    state=each.state,
                    evaluations=each.evaluations,
                    best=each.best,
                    confirmed=each.confirmed,
                )
                for each in summaries
            ]
        )

    def run(self, name: str) -> answers.RunText:
        with Store.open(self._store) as book:
            state = fold(book, book.find_run(name))
        best = state.best
        return answers.RunText(
            run=state.run,
            task=state.task.name,
            backend=state.config.backend,
            steps=[
                answers.StepLine(
                    step=step.number,
                    proposer=step.proposal.proposer,
                    parent_step=None if step.parent is None else step_of(state, step.parent),
                    summary=step.proposal.summary,
                    outcome=_outcome(step),
                )
                for step in state.steps.values()
            ],
            best_step=None if best is None else step_of(state, best.candidate.content_hash),
            best_program=None if best is None else best.candidate.source,
            verdict=None if best is None else answers.Verdict.of(best.evaluation),
        )

    @contextlib.contextmanager
    def _judge(self) -> Iterator[Evaluator]:
        """The engine, alone, for one more program."""
        with self._alone() as engine:
            self._left -= 1
            yield engine

    @contextlib.contextmanager
    def _alone(self) -> Iterator[Evaluator]:
        """The engine, for one user at a time. It is started when it is needed first."""
        with self._busy:
            if self._left <= 0:
                raise LimitReached(
                    f"all {self._evaluations} evaluations of this session are used",
                    hint="start the server again, with a larger --evaluations",
                )
            if self._engine is None:
                self._engine = self._stack.enter_context(self._open_engine())
            yield self._engine


def _program(source: str | None, file: str | None, backend: str) -> Candidate:
    if (source is None) == (file is None):
        raise BadInput("expected either source or file", hint="give one of them")
    if file is not None:
        return read_candidate(Path(file), backend)
    assert source is not None
    return make_candidate(source, backend, "told.py")


def _first(task: Task, backend: str, source: str | None, file: str | None) -> Candidate:
    if source is not None or file is not None:
        return _program(source, file, backend)
    own = own_starts(task, backend)
    if not own:
        raise BadInput(
            f"task {task.name} brings no starting kernel for {backend}",
            hint="give a first program as source or file",
        )
    return own[0]


def _outcome(step: Step) -> str:
    return "being judged" if step.evaluation is None else headline(step.evaluation)
