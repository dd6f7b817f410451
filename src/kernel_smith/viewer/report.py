"""One HTML file with the application and the data of some runs and results: `report.html`.

Every part of the data is packed for itself (gzip, base64), and unpacked when a page asks for it.
"""

from __future__ import annotations

import base64
import contextlib
import gc
import gzip
import html
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import kernel_smith
from kernel_smith.records import Record
from kernel_smith.viewer.bench_page import ResultBook
from kernel_smith.viewer.book import RunBook
from kernel_smith.viewer.page_files import MAIN, embedded_frame
from kernel_smith.viewer.records import PORTION, Contents, RunPage

Told = Callable[[str], None]

_OBJECTS_BETWEEN_COLLECTIONS = 200_000
_LEVEL = 6  # of packing: the last percent would take twice as long


def write_report(
    runs: Sequence[str],
    book: RunBook | None,
    results: ResultBook,
    write: Callable[[str], Any],
    tell: Told = lambda words: None,
) -> None:
    """Write the page piece by piece. `tell` is told what is being done."""
    with _collecting_rarely():
        _write(runs, book, results, write, tell)


@contextlib.contextmanager
def _collecting_rarely() -> Iterator[None]:
    """Millions of small records come and go, none of them in a circle: looking for such took a
    sixth of the time."""
    before = gc.get_threshold()
    gc.set_threshold(_OBJECTS_BETWEEN_COLLECTIONS)
    try:
        yield
    finally:
        gc.set_threshold(*before)


def _write(
    runs: Sequence[str],
    book: RunBook | None,
    results: ResultBook,
    write: Callable[[str], Any],
    tell: Told,
) -> None:
    before, after = embedded_frame()
    write(before)
    sizes: dict[str, int] = {}
    for run in runs if book is not None else ():
        assert book is not None
        page = _read_run(run, book, tell)
        sizes[run] = len(page.steps.step)
        write(_packed(f"run/{run}", page))
    for name in results.names:
        tell(f"reading {name}")
        write(_packed(f"result/{name}", results.page(name)))
    write(_packed("contents", _contents(runs, book, results)))
    write(MAIN)
    for name, record in _details(sizes, book, results, tell):
        write(_packed(name, record))
    write(after)


def _read_run(run: str, book: RunBook, tell: Told) -> RunPage:
    def count(events: int) -> None:
        if events % 500 == 0:
            tell(f"reading {run}: {events:,} events")

    tell(f"reading {run}")
    return book.page(run, count)


def _contents(runs: Sequence[str], book: RunBook | None, results: ResultBook) -> Contents:
    cards = book.cards() if book is not None else ()
    return Contents(
        version=kernel_smith.__version__,
        live=False,
        runs=tuple(card for card in cards if card.id in runs),
        results=results.names,
    )


def _details(
    sizes: dict[str, int], book: RunBook | None, results: ResultBook, tell: Told
) -> Iterator[tuple[str, Record]]:
    """Yield what pages ask for one by one: programs, evaluations, prompts."""
    for run, size in sizes.items():
        assert book is not None
        for portion in range(_portions(size)):
            if portion % 10 == 0:
                tell(f"writing the programs of {run}: {portion * PORTION:,} of {size:,}")
            yield f"steps/{run}/{portion}", book.portion(run, portion)
    for name in results.names:
        for portion in range(_portions(len(results.page(name).rows))):
            yield f"winners/{name}/{portion}", results.portion(name, portion)


def _packed(name: str, record: Record) -> str:
    data = record.model_dump_json().encode()
    packed = base64.b64encode(gzip.compress(data, _LEVEL, mtime=0)).decode()
    attribute = html.escape(name, quote=True)
    return f'<script type="text/plain" data-part="{attribute}">{packed}</script>\n'


def _portions(count: int) -> int:
    return -(-count // PORTION)
