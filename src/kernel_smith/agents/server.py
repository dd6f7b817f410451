"""The door as an MCP server: tools with structured results and progress, guides as resources."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import anyio
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.types import ToolAnnotations
from pydantic import Field

import kernel_smith
from kernel_smith.agents import answers
from kernel_smith.agents.benchmark import Wanted
from kernel_smith.agents.door import Door
from kernel_smith.agents.long_work import LongWork
from kernel_smith.errors import InternalError, UserError
from kernel_smith.knowledge import all_guides
from kernel_smith.proposers.model.texts import Templates
from kernel_smith.records.options import Baseline

T = TypeVar("T")

_BACKENDS = ("cpp", "triton", "cuda", "hip", "maca")
_BEAT_SECONDS = 1.0
_INSTRUCTIONS = """\
kernel-smith judges kernels: it compiles, checks and times programs in a sandbox, against PyTorch.
To make a task faster: begin_run, then again and again ask (what to improve, and the rules) and tell
(your version). A program counts when it is correct on secret inputs and its 95% interval says that
it is faster. Read kernel-smith://guide/evaluation for what a verdict says."""

_READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
_WRITES = ToolAnnotations(read_only_hint=False, destructive_hint=False, open_world_hint=False)

TaskName = Annotated[str, Field(description="a built-in task's name, or a task file's path")]
Backend = Annotated[str, Field(description="cpp, triton, cuda, hip or maca")]
Source = Annotated[str | None, Field(description="the program's text, with class ModelNew")]
File = Annotated[str | None, Field(description="or the path of a file that holds it")]
RunName = Annotated[str, Field(description="a run's id, its beginning, or `latest`")]
Parent = Annotated[
    str | None, Field(description="a step's number or a hash; null: the run's method chooses")
]


def make_server(door: Door) -> MCPServer:
    """Return a server that offers all that the door can do."""
    server: MCPServer = MCPServer(
        "kernel-smith",
        instructions=_INSTRUCTIONS,
        version=kernel_smith.__version__,
        log_level="WARNING",
    )
    _add_reading(server, door)
    _add_judging(server, door)
    _add_benchmark(server, door)
    _add_resources(server)
    return server


def _add_reading(server: MCPServer, door: Door) -> None:
    """Tools that answer at once and change nothing."""

    @server.tool(annotations=_READS)
    async def list_tasks(suite: Literal["cpu", "gpu", "maca"] = "cpu") -> answers.Tasks:
        """List the built-in tasks of a suite."""
        return await _in_thread(door.tasks, suite)

    @server.tool(annotations=_READS)
    async def show_task(task: TaskName) -> answers.TaskText:
        """Show a task: its reference, its workloads and its starting kernels."""
        return await _in_thread(door.task, task)

    @server.tool(annotations=_READS)
    async def knowledge(
        topic: str | None = None, task: str | None = None, backend: Backend = "cpp"
    ) -> answers.Advice:
        """Tell what is known about fast kernels: a guide, or what helps with a task on this
        machine. Without either: the guides that there are."""
        return await _in_thread(door.knowledge, topic, task, backend)

    @server.tool(annotations=_READS)
    async def list_runs(limit: Annotated[int, Field(ge=1, le=200)] = 20) -> answers.Runs:
        """List runs, the newest first."""
        return await _in_thread(door.runs, limit)

    @server.tool(annotations=_READS)
    async def show_run(run: RunName) -> answers.RunText:
        """Show a run step by step, with its best program."""
        return await _in_thread(door.run, run)

    @server.tool(annotations=_READS)
    async def bench_report(
        folder: Annotated[str, Field(description="that `kernel-smith bench -o FOLDER` wrote")],
    ) -> answers.Report:
        """Report a benchmark's result: leaderboard, levels, categories, cost, what fell short."""
        return await _in_thread(door.bench_report, folder)

    @server.tool(annotations=_READS)
    async def ask(
        run: RunName,
        best: Annotated[bool, Field(description="improve the best, not a sampled one")] = False,
        parent: Parent = None,
        brief: Annotated[
            bool, Field(description="without rules, dialect and reference: you know them")
        ] = False,
    ) -> answers.Asked:
        """Ask a run which program to improve, with its evidence and what failed before."""
        return await _in_thread(partial(door.ask, run, best=best, parent=parent, brief=brief))


def _add_judging(server: MCPServer, door: Door) -> None:
    """Tools that have a program judged: seconds to minutes, with progress."""

    @server.tool(annotations=_WRITES)
    async def evaluate(
        ctx: Context,
        task: TaskName,
        source: Source = None,
        file: File = None,
        backend: Backend = "cpp",
        baselines: tuple[Baseline, ...] = ("eager",),
    ) -> answers.Verdict:
        """Judge one program for a task, apart from any run. `compile` among the baselines also
        compares with torch.compile."""
        work = partial(door.evaluate, task, source, file, backend, baselines)
        return await _with_progress(ctx, LongWork("judging the program"), work)

    @server.tool(annotations=_WRITES)
    async def begin_run(
        ctx: Context,
        task: TaskName,
        backend: Backend = "cpp",
        source: Source = None,
        file: File = None,
    ) -> answers.Begun:
        """Begin a run: judge a first program, by default the task's own starting kernel."""
        work = partial(door.begin, task, backend, source, file)
        return await _with_progress(ctx, LongWork("judging the first program"), work)

    @server.tool(annotations=_WRITES)
    async def tell(
        ctx: Context,
        run: RunName,
        source: Source = None,
        file: File = None,
        parent: Annotated[str | None, Field(description="the step that you changed")] = None,
        summary: Annotated[str, Field(description="what you changed, in a sentence")] = "",
    ) -> answers.ToldAnswer:
        """Have your program judged as the next step of a run."""
        work = partial(door.tell, run, source, file, parent, summary)
        return await _with_progress(ctx, LongWork("judging your program"), work)


def _add_benchmark(server: MCPServer, door: Door) -> None:
    """The tool that works on many problems: minutes, with progress, and on where it stopped."""

    @server.tool(annotations=_WRITES)
    async def bench(
        ctx: Context,
        suites: Annotated[
            tuple[str, ...],
            Field(min_length=1, description="cpu, gpu, maca, a checkout, a folder or a file"),
        ],
        problems: Annotated[
            tuple[str, ...], Field(description="globs on names; empty: all of the suites")
        ] = (),
        sample: Annotated[int | None, Field(ge=1, description="so many of each level")] = None,
        methods: Annotated[
            tuple[str, ...], Field(description="arms without a model, such as embedded or greedy")
        ] = (),
        told: Annotated[
            tuple[str, ...],
            Field(description="arms of programs: [NAME=]FOLDER with PROBLEM.py files"),
        ] = (),
        backend: Backend = "cpp",
        evaluations: Annotated[int, Field(ge=1, le=1000, description="per problem and arm")] = 10,
        minutes: Annotated[float, Field(ge=0.05, le=240, description="for this call")] = 10.0,
        folder: Annotated[str, Field(description="of the result; the same one goes on")] = (
            "bench-result"
        ),
    ) -> answers.Benched:
        """Run a benchmark: solve problems by arms at the same budget, and score them. It ends in
        `minutes`; call it again with the same words to go on with what is left."""
        wanted = Wanted(
            suites,
            problems,
            sample,
            methods,
            told,
            backend,
            evaluations,
            minutes,
            Path(folder),
        )
        work = LongWork("benchmark: reading the problems")
        return await _with_progress(ctx, work, partial(door.bench, wanted, work))


def _add_resources(server: MCPServer) -> None:
    """Dialects, guides and hardware sheets, each listed by itself so that clients show them."""
    templates = Templates()
    for backend in _BACKENDS:
        _add_text(
            server,
            f"kernel-smith://dialect/{backend}",
            f"How {backend} kernels are written",
            templates.dialect(backend),
        )
    for guide in all_guides():
        kind = "guide" if guide.hardware is None else "hardware"
        _add_text(server, f"kernel-smith://{kind}/{guide.topic}", guide.title, guide.markdown)


def _add_text(server: MCPServer, uri: str, title: str, text: str) -> None:
    name = uri.rpartition("://")[2]

    @server.resource(uri, name=name, title=title, description=title, mime_type="text/markdown")
    def read() -> str:
        return text


async def _in_thread(work: Callable[..., T], *arguments: Any) -> T:
    """Do blocking work. What the user can mend is said to the model, with the remedy."""
    try:
        return await anyio.to_thread.run_sync(partial(work, *arguments), abandon_on_cancel=True)
    except UserError as error:
        raise ToolError(f"{error.what}\nhint: {error.hint}") from None
    except InternalError as error:
        raise ToolError(f"internal: {error}\nhint: report it, with `doctor --json`") from None


async def _with_progress(ctx: Context, under_way: LongWork, work: Callable[[], T]) -> T:
    """Report every second that the work is still under way, and for how long. Stop it if whoever
    asked waits no more."""
    begin = time.monotonic()

    async def beat() -> None:
        while True:
            seconds = time.monotonic() - begin
            await ctx.report_progress(seconds, message=f"{under_way.words}: {seconds:.0f} s")
            await anyio.sleep(_BEAT_SECONDS)

    failed: ToolError | None = None
    async with anyio.create_task_group() as group:
        group.start_soon(beat)
        try:
            done = await _in_thread(work)
        except ToolError as error:  # which the group would wrap
            failed = error
        except anyio.get_cancelled_exc_class():
            under_way.stop()
            raise
        group.cancel_scope.cancel()
    if failed is not None:
        raise failed
    return done
