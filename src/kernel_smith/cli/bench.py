"""`kernel-smith bench SUITE...`: solve the problems of suites, and score what came of it."""

from __future__ import annotations

import contextlib
import math
import shlex
import signal
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from kernel_smith.cli.bench_list import list_problems
from kernel_smith.cli.bench_options import Categories, Levels, Problems, Sample, SampleSeed, Suites
from kernel_smith.cli.bench_results import compare, join, report, verify
from kernel_smith.cli.default_command import DefaultCommand
from kernel_smith.cli.exit_codes import NEGATIVE
from kernel_smith.cli.model_options import ModelTally, check_models, model_settings
from kernel_smith.cli.options import (
    PATIENCE,
    BackendName,
    EngineAddress,
    Lanes,
    ModelNames,
    ModelsFile,
    Patience,
    ProposerNames,
    Quiet,
)
from kernel_smith.cli.output import console, errors, print_json, print_next
from kernel_smith.errors import BadInput, Interrupted
from kernel_smith.records import Budget

if TYPE_CHECKING:
    from kernel_smith.bench.arms import Plan
    from kernel_smith.bench.folder import Winners
    from kernel_smith.bench.runner import Job
    from kernel_smith.records.bench import BenchResult, BenchRow
    from kernel_smith.runs.state import RunState

_RUN = "run"
_BASELINES = {"cpp": ("eager", "compile")}
_ON_GPU = ("eager", "compile", "max-autotune")


class _Group(DefaultCommand):
    default = _RUN


app = typer.Typer(
    cls=_Group,
    help="Solve the problems of suites, score, compare and verify. "
    "`kernel-smith bench SUITE...` is short for `kernel-smith bench run SUITE...`.",
    no_args_is_help=True,
)
app.command("list")(list_problems)
app.command("report")(report)
app.command("join")(join)
app.command("compare")(compare)
app.command("verify")(verify)


@app.command(_RUN)
def run(
    suites: Suites,
    level: Levels = None,
    category: Categories = None,
    problem: Problems = None,
    sample: Sample = None,
    sample_seed: SampleSeed = 0,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="An arm: one-shot, best-of-n, refinement, islands, uct, contrast, paper, "
            "embedded, ... May be repeated.",
            metavar="NAME",
        ),
    ] = None,
    told: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[NAME=]FOLDER", help="An arm: programs from elsewhere. May be repeated."
        ),
    ] = None,
    backend: BackendName = "cpp",
    precision: Annotated[
        list[str] | None,
        typer.Option(
            help="strict, tf32, ...; default: each problem's own. May be repeated.", metavar="NAME"
        ),
    ] = None,
    baseline: Annotated[
        list[str] | None,
        typer.Option(
            help="What winners are held against in the end. May be repeated.", metavar="NAME"
        ),
    ] = None,
    proposer: ProposerNames = None,
    model: ModelNames = None,
    models: ModelsFile = None,
    evaluations: Annotated[
        int | None, typer.Option(min=1, help="Evaluations per problem and arm.")
    ] = None,
    rounds: Annotated[int | None, typer.Option(min=1, help="Answers per problem and arm.")] = None,
    minutes: Annotated[
        float | None, typer.Option(min=0.05, help="Minutes per problem and arm.")
    ] = None,
    device_minutes: Annotated[
        float | None, typer.Option(min=0.05, help="Minutes of evaluating per problem and arm.")
    ] = None,
    tokens: Annotated[int | None, typer.Option(min=1, help="Tokens per problem and arm.")] = None,
    dollars: Annotated[
        float | None, typer.Option(min=0.0001, help="Dollars per problem and arm.")
    ] = None,
    total_evaluations: Annotated[
        int | None, typer.Option(min=1, help="Evaluations of all together.")
    ] = None,
    total_minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Minutes of this session; the next one goes on.")
    ] = None,
    total_device_minutes: Annotated[
        float | None, typer.Option(min=0.01, help="Minutes of evaluating of all together.")
    ] = None,
    total_tokens: Annotated[int | None, typer.Option(min=1, help="Tokens of all together.")] = None,
    total_dollars: Annotated[
        float | None, typer.Option(min=0.0001, help="Dollars of all together.")
    ] = None,
    lanes: Lanes = 1,
    at_once: Annotated[
        int | None, typer.Option(min=1, help="Problems at once; default: as many as lanes.")
    ] = None,
    patience: Patience = PATIENCE,
    leave_out_refused: Annotated[
        bool,
        typer.Option(
            "--leave-out-refused",
            help="Score without problems that cannot be judged; else they count as not solved.",
        ),
    ] = False,
    again: Annotated[
        bool, typer.Option("--again", help="Look at problems again that could not be judged.")
    ] = False,
    seed: Annotated[int, typer.Option(help="For whatever is drawn at random.")] = 0,
    engine: EngineAddress = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The result's folder; the same one goes on.")
    ] = Path("bench-result"),
    store: Annotated[
        Path | None, typer.Option(help="The file that runs are kept in; default: in the folder.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Solve problems by one arm or several, and score them.

    All arms get the same budget. A suite is `cpu`, `gpu`, `maca`, a KernelBench checkout, a
    flashinfer-bench data set, a folder of problem files, a file, or a glob. Run the same command
    again to go on where it stopped.

    Exits with 0 if every problem that can be judged was solved, 1 if not, and 3 if models were
    asked and gave nothing in all of it.
    """
    from kernel_smith.bench.arms import Protocol, make_plans
    from kernel_smith.bench.runner import Job
    from kernel_smith.bench.stamping import stamped
    from kernel_smith.bench.suites import Selection, find_problems
    from kernel_smith.evaluation.backends import find_backend

    find_backend(backend)
    selection = Selection(
        tuple(level or ()), tuple(category or ()), tuple(problem or ()), sample, sample_seed
    )
    problems = find_problems(suites, selection, precision or ())
    side_by_side = at_once or lanes
    protocol = Protocol(
        backend=backend,
        limits={
            "evaluations": evaluations,
            "rounds": rounds,
            "seconds": _seconds(minutes),
            "device_seconds": _seconds(device_minutes),
            "tokens": tokens,
            "dollars": dollars,
        },
        models=model_settings(model, models),
        proposers=None if proposer is None else tuple(proposer),
        baselines=_baselines(baseline, backend),
        lanes=max(1, lanes // side_by_side),
        seed=seed,
    )
    plans = make_plans(method or (), told or (), protocol)
    jobs = [Job(plan, each) for each in problems for plan in plans]
    in_all = Budget(
        evaluations=total_evaluations,
        device_seconds=_seconds(total_device_minutes),
        tokens=total_tokens,
        dollars=total_dollars,
    )
    session = _Session(jobs, output, store or output / "runs.sqlite", engine, patience)
    _warn_of_unused(plans, jobs)
    check_models(protocol.models, quiet=quiet or json)
    rows = session.run(in_all, total_minutes, lanes, side_by_side, again=again, quiet=quiet)
    result = stamped(
        rows,
        plans,
        session.winners.places,
        suites,
        selection,
        refused="leave-out" if leave_out_refused else "count",
        seed=seed,
        engine=engine,
        at_once=side_by_side,
        lanes=lanes,
    )
    _show(result, output, as_json=json)
    if session.interrupted:
        raise Interrupted("interrupted; every step is kept", hint=f"go on: {_same_command()}")
    session.models.check("benchmark", f"begin anew ({_same_command()} --output OTHER)")
    raise typer.Exit(0 if _is_complete(result) else NEGATIVE)


class _InAHurry(Exception):
    """What is being evaluated is evaluated again by the next session: nobody waits for it."""


class _Session:
    """Runs the jobs until they are done, or somebody or a budget stops them."""

    def __init__(
        self, jobs: Sequence[Job], output: Path, store: Path, engine: str | None, patience: float
    ) -> None:
        from kernel_smith.bench.folder import Winners

        self._jobs = jobs
        self._store = store
        self._engine = engine
        self._patience = patience
        self.winners: Winners = Winners(output)
        self.models = ModelTally()
        self.interrupted = False

    def run(
        self,
        in_all: Budget,
        total_minutes: float | None,
        lanes: int,
        at_once: int,
        *,
        again: bool,
        quiet: bool,
    ) -> list[BenchRow]:
        from kernel_smith.bench.runner import Runner
        from kernel_smith.cli.bench_view import watching
        from kernel_smith.evaluation.engines import open_engine
        from kernel_smith.runs.campaign import Campaign
        from kernel_smith.store import Store

        deadline = time.monotonic() + (_seconds(total_minutes) or math.inf)
        _make_folder(self._store.parent)
        rows: list[BenchRow] = []
        with (
            contextlib.suppress(_InAHurry),
            Store.open(self._store, create=True) as book,
            watching(self._jobs, quiet=quiet) as view,
            open_engine(self._engine, lanes, self._patience) as engine,
        ):
            campaign = Campaign(book, deadline)
            runner = Runner(campaign, engine, self._jobs, in_all, view, self._keep)

            def stop(*_: object) -> None:
                if self.interrupted:
                    raise KeyboardInterrupt
                self.interrupted = True
                campaign.stop()

            previous = signal.signal(signal.SIGINT, stop)
            try:
                rows = runner.run(at_once, again=again)
            finally:
                signal.signal(signal.SIGINT, previous)
            if any(row.status == "unfinished" for row in rows):
                raise _InAHurry
        return rows

    def _keep(self, row: BenchRow, state: RunState) -> None:
        self.winners.keep(row, state)
        self.models.note(state)


def _same_command() -> str:
    return shlex.join(["kernel-smith", *sys.argv[1:]])


def _show(result: BenchResult, output: Path, *, as_json: bool) -> None:
    from kernel_smith.bench.folder import write_result
    from kernel_smith.bench.summary import summarise

    boards = write_result(output, result)
    if as_json:
        print_json(result.model_dump(mode="json"))
        return
    console.print(summarise(result.rows, boards))
    console.print(f"The result is in {output}: report.md, scores.csv, result.json.")
    folder = shlex.quote(str(output))
    if any(row.status == "unfinished" for row in result.rows):
        print_next(_same_command(), "go on")
    print_next(f"kernel-smith report {folder}", "look at it, as one HTML file")
    print_next(f"kernel-smith bench verify {folder}", "judge the winners again")


def _is_complete(result: BenchResult) -> bool:
    from kernel_smith.bench.scores import is_unfit

    return all(row.status == "correct" or is_unfit(row) for row in result.rows)


def _warn_of_unused(plans: Sequence[Plan], jobs: Sequence[Job]) -> None:
    from kernel_smith.bench.told import unused_programs

    problems = [job.problem for job in jobs]
    for plan in plans:
        unused = unused_programs(plan.told, problems) if plan.told is not None else []
        if unused:
            what = f"{len(unused)} files of {plan.told} belong to none of the chosen problems"
            errors.print(f"note: {what}, such as {unused[0]}")


def _baselines(named: list[str] | None, backend: str) -> Any:
    from kernel_smith.cli.evaluate import baselines_of

    return baselines_of(named or list(_BASELINES.get(backend, _ON_GPU)))


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise BadInput(
            f"{folder}: cannot be made ({error.strerror or error})",
            hint="choose another folder with --output FOLDER",
        ) from None


def _seconds(minutes: float | None) -> float | None:
    return None if minutes is None else 60 * minutes
