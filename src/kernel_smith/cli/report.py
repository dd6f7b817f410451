"""`kernel-smith report` and `dashboard`: runs and benchmark results to look at, in a browser."""

from __future__ import annotations

import contextlib
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_smith.cli.options import Quiet, StoreFile
from kernel_smith.cli.output import console, print_json, print_next, progress, written
from kernel_smith.errors import BadInput
from kernel_smith.records.counts import counted

if TYPE_CHECKING:
    from kernel_smith.store import Store
    from kernel_smith.viewer.book import RunBook

# What the pages need is imported where it is used: it would double the time that `--help` takes.
_DEFAULT_PORT = 8400


def report(
    what: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="RUN|FOLDER",
            help="Runs (an id, its beginning, or `latest`), and folders of benchmark results. "
            "Default: latest.",
        ),
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="The HTML file; default: NAME.html.")
    ] = None,
    store: StoreFile = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Write runs and benchmark results as one HTML file.

    Any browser opens it. It needs no network and no other file, so it can be kept or sent as it is.
    """
    from kernel_smith.viewer.bench_page import ResultBook, is_result
    from kernel_smith.viewer.report import write_report

    wanted = what or ["latest"]
    results = ResultBook([Path(each) for each in wanted if is_result(Path(each))])
    names = [each for each in wanted if not is_result(Path(each))]
    with contextlib.ExitStack() as stack:
        opened = stack.enter_context(_opened(store)) if names else None
        runs = list(dict.fromkeys(opened.find_run(each) for each in names)) if opened else []
        path = output or Path(f"{[*runs, *map(_file_name, results.names)][0]}.html")
        tell = stack.enter_context(progress(quiet or json))
        write = stack.enter_context(written(path))
        write_report(runs, _book(opened, store) if opened else None, results, write, tell)
    if json:
        found = {"path": str(path), "runs": runs, "results": list(results.names)}
        print_json(found | {"bytes": path.stat().st_size})
        return
    shown = ", ".join([*runs, *results.names])
    console.print(f"{path}: {shown} ({path.stat().st_size / 1e6:.1f} MB)")
    print_next(f"xdg-open {shlex.quote(str(path))}", "look at it, in any browser")


def dashboard(
    host: Annotated[str, typer.Option(help="The address to listen on.")] = "127.0.0.1",
    port: Annotated[
        int, typer.Option(min=0, max=65535, help="The port to listen on; 0: any that is free.")
    ] = _DEFAULT_PORT,
    store: StoreFile = None,
    results: Annotated[
        list[Path] | None,
        typer.Option(metavar="FOLDER", help="Also show this benchmark result. May be repeated."),
    ] = None,
) -> None:
    """Show runs in a browser while they go on. It only reads.

    Whoever is on another machine needs the token that is printed with the address. Ctrl-C ends it.
    """
    from kernel_smith.evaluation.service.needs import need_web_packages

    need_web_packages()
    from kernel_smith.viewer.bench_page import ResultBook, is_result
    from kernel_smith.viewer.server import Dashboard

    for path in results or []:
        if not is_result(path):
            raise BadInput(
                f"{path}: no benchmark result, expected a folder with result.json",
                hint="run `kernel-smith bench SUITE --output FOLDER` first, or name its folder",
            )
    with _opened(store) as opened:
        live = Dashboard(_book(opened, store), ResultBook(results or []), host=host, port=port)
        console.print(f"showing {counted(len(opened.runs()), 'run')} at {live.url}")
        print_next(f"xdg-open {shlex.quote(live.url)}", "Ctrl-C ends it")
        with contextlib.suppress(KeyboardInterrupt):
            live.run()


def _opened(store: Path | None) -> Store:
    from kernel_smith.store import Store

    return Store.open(store)


def _book(store: Store, path: Path | None) -> RunBook:
    from kernel_smith.cli.task_words import words_of
    from kernel_smith.viewer.book import RunBook

    return RunBook(store, words_of, path)


def _file_name(result: str) -> str:
    return Path(result).resolve().name
