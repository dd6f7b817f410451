"""One HTML file with the application and the data of some runs and results: `report.html`.

Every part of the data is packed for itself (gzip, base64), and unpacked when a page asks for it.
"""

from __future__ import annotations

import base64
import gzip
import html
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import kernel_smith
from kernel_smith.records import Record
from kernel_smith.viewer.bench_page import ResultBook
from kernel_smith.viewer.book import RunBook
from kernel_smith.viewer.page_files import embedded_frame
from kernel_smith.viewer.records import PORTION, Contents

Part = tuple[str, Record]
Told = Callable[[str], None]


def write_report(
    runs: Sequence[str],
    book: RunBook | None,
    results: ResultBook,
    write: Callable[[str], Any],
    tell: Told = lambda words: None,
) -> None:
    """Write the page piece by piece. `tell` is told what is being done."""
    before, after = embedded_frame()
    write(before)
    for name, record in _parts(runs, book, results, tell):
        packed = base64.b64encode(gzip.compress(record.model_dump_json().encode(), mtime=0))
        attribute = html.escape(name, quote=True)
        write(f'<script type="text/plain" data-part="{attribute}">{packed.decode()}</script>\n')
    write(after)


def _parts(
    runs: Sequence[str], book: RunBook | None, results: ResultBook, tell: Told
) -> Iterator[Part]:
    for run in runs if book is not None else ():
        assert book is not None
        yield from _run_parts(run, book, tell)
    for name in results.names:
        tell(f"reading {name}")
        page = results.page(name)
        yield f"result/{name}", page
        for portion in range(_portions(len(page.rows))):
            yield f"winners/{name}/{portion}", results.portion(name, portion)
    cards = book.cards() if book is not None else ()
    yield (
        "contents",
        Contents(
            version=kernel_smith.__version__,
            live=False,
            runs=tuple(card for card in cards if card.id in runs),
            results=results.names,
        ),
    )


def _run_parts(run: str, book: RunBook, tell: Told) -> Iterator[Part]:
    def count(events: int) -> None:
        if events % 500 == 0:
            tell(f"reading {run}: {events:,} events")

    tell(f"reading {run}")
    page = book.page(run, count)
    yield f"run/{run}", page
    portions = _portions(len(page.steps.step))
    for portion in range(portions):
        if portion % 10 == 0:
            tell(
                f"writing the programs of {run}: {portion * PORTION:,} of {len(page.steps.step):,}"
            )
        yield f"steps/{run}/{portion}", book.portion(run, portion)


def _portions(count: int) -> int:
    return -(-count // PORTION)
