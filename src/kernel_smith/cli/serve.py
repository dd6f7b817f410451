"""`kernel-smith serve`: evaluations for others, over HTTP; and the tokens of those who may ask."""

from __future__ import annotations

import logging
import shlex
from pathlib import Path
from typing import Annotated

import typer

from kernel_smith.cli.output import console, errors, print_json, print_next
from kernel_smith.records.counts import counted

# What serving needs is imported where it is used: it would double the time that `--help` takes.
_DEFAULT_PORT = 8300
_DEFAULT_STORE = Path(".kernel-smith/jobs.sqlite")

app = typer.Typer(invoke_without_command=True)
tokens = typer.Typer(help="Who may ask: add, list and remove clients.", no_args_is_help=True)
app.add_typer(tokens, name="tokens")

TokenPath = Annotated[Path, typer.Argument(metavar="FILE", help="The file of the clients.")]
ClientName = Annotated[str, typer.Argument(help="What the client is called.")]


class _Unfinished(Exception):
    """Leaves an engine in a hurry: what it still evaluates was given back."""


@app.callback()
def serve(
    context: typer.Context,
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0: any that is free.")
    ] = _DEFAULT_PORT,
    store: Annotated[Path, typer.Option(help="The file that jobs are kept in.")] = _DEFAULT_STORE,
    lanes: Annotated[
        int,
        typer.Option(
            min=1, help="Candidates evaluated at once: here, or on each device of a Ray cluster."
        ),
    ] = 1,
    engine: Annotated[
        str | None,
        typer.Option(
            metavar="ADDRESS",
            help="Have them evaluated elsewhere: ray, ray://HOST:PORT, http://HOST:PORT, or "
            "simulated:N:SECONDS. Default: on this machine.",
        ),
    ] = None,
    clients: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Serve only the clients of this file."),
    ] = None,
    task: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME",
            help="Evaluate only this: a task file, a built-in task's name, or a built-in suite "
            "(cpu or gpu). May be repeated. Default: whatever clients send.",
        ),
    ] = None,
    max_waiting: Annotated[
        int, typer.Option(min=1, help="Jobs that may wait, of all clients together.")
    ] = 10_000,
    drain_seconds: Annotated[
        float, typer.Option(min=0, help="How long running evaluations may take at the end.")
    ] = 60.0,
) -> None:
    """Evaluate candidates for others, over HTTP.

    SIGTERM or Ctrl-C ends it: running evaluations may finish, everything else is kept in the store
    and goes on when the service is started again.
    """
    if context.invoked_subcommand is not None:
        return
    from kernel_smith.evaluation.service.needs import need_web_packages

    need_web_packages()
    logging.basicConfig(format="%(asctime)s %(levelname)s %(name)s: %(message)s")
    given_back = _serve(
        host, port, store, lanes, engine, clients, _allowed(task), max_waiting, drain_seconds
    )
    if given_back:
        errors.print(f"not finished, and begun anew next time: {counted(given_back, 'evaluation')}")


def _serve(
    host: str,
    port: int,
    store: Path,
    lanes: int,
    address: str | None,
    tokens: Path | None,
    tasks: frozenset[str] | None,
    max_waiting: int,
    drain_seconds: float,
) -> int:
    """Returns how many evaluations were given back."""
    from kernel_smith.evaluation.engines import open_engine
    from kernel_smith.evaluation.service.auth import TokenFile
    from kernel_smith.evaluation.service.book import BookLimits, JobBook
    from kernel_smith.evaluation.service.dispatcher import Dispatcher
    from kernel_smith.evaluation.service.server import Service, refuse_strangers

    clients = TokenFile(tokens) if tokens is not None else None
    refuse_strangers(host, clients)
    limits = BookLimits(waiting=max_waiting)
    given_back = 0
    try:
        with (
            JobBook.open(store, limits=limits) as book,
            open_engine(address, lanes) as engine,
        ):
            dispatcher = Dispatcher(book, engine, capacity=engine.capacity)
            service = Service(
                book,
                dispatcher,
                host=host,
                port=port,
                tokens=clients,
                tasks=tasks,
                drain_seconds=drain_seconds,
            )
            console.print(f"serving on {service.url}, jobs are kept in {store}")
            print_next(_first_question(service.url, clients is not None), "what it can do")
            given_back = service.run()
            if given_back:
                raise _Unfinished
    except _Unfinished:
        pass
    return given_back


def _allowed(names: list[str] | None) -> frozenset[str] | None:
    """Return the content hashes of these tasks, in whatever precision a client asks for."""
    if not names:
        return None
    from kernel_smith.records import Precision
    from kernel_smith.tasks import SUITES, builtin_tasks, find_task, with_precision

    found = [builtin_tasks(name) if name in SUITES else [find_task(name)] for name in names]
    return frozenset(
        with_precision(task, precision).content_hash
        for tasks in found
        for task in tasks
        for precision in Precision
    )


def _first_question(url: str, needs_token: bool) -> str:
    header = '-H "Authorization: Bearer $TOKEN" ' if needs_token else ""
    return f"curl {header}{url}/v1/capacity"


@tokens.command("add")
def add(
    file: TokenPath,
    name: ClientName,
    priority: Annotated[
        int, typer.Option(min=-10, max=10, help="The highest priority of its jobs.")
    ] = 10,
) -> None:
    """Make a token for a client, and show it: this once."""
    from kernel_smith.evaluation.service.auth import add_token

    print(add_token(file, name, priority))
    errors.print("Give it to the client now; it cannot be shown again.")
    errors.print(f"next: {_serving(file)}  # a service that runs already needs no restart")


def _serving(file: Path) -> str:
    return shlex.join(["kernel-smith", "serve", "--clients", str(file)])


@tokens.command("list")
def list_clients(
    file: TokenPath, json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False
) -> None:
    """List the clients, and the highest priority of their jobs."""
    from kernel_smith.evaluation.service.auth import list_tokens

    clients = list_tokens(file)
    if json:
        listed = [{"name": each.name, "priority": each.priority_cap} for each in clients]
        print_json({"clients": listed})
        return
    for client in clients:
        console.print(f"{client.name}  priority {client.priority_cap}")
    if clients:
        print_next(_serving(file), "serve them")
    else:
        console.print("no clients yet")
        adding = ["kernel-smith", "serve", "tokens", "add", str(file), "NAME"]
        print_next(shlex.join(adding), "add one")


@tokens.command("remove")
def remove(file: TokenPath, name: ClientName) -> None:
    """Let a client in no more. Its jobs stay."""
    from kernel_smith.evaluation.service.auth import remove_token

    remove_token(file, name)
    console.print(f"{name} is removed")
    print_next(shlex.join(["kernel-smith", "serve", "tokens", "list", str(file)]), "who is left")
