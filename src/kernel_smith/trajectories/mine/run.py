"""`mine`: from names of packages to a folder of task files."""

from __future__ import annotations

import ast
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

from kernel_smith.errors import BadInput, writing
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records.counts import counted
from kernel_smith.tasks import read_task
from kernel_smith.trajectories.mine.classes import module_classes
from kernel_smith.trajectories.mine.closure import Extract, Shelf, extract
from kernel_smith.trajectories.mine.family import family_of
from kernel_smith.trajectories.mine.identity import structure
from kernel_smith.trajectories.mine.library import Library, read_library
from kernel_smith.trajectories.mine.names import SourceFile
from kernel_smith.trajectories.mine.plan import Plan
from kernel_smith.trajectories.mine.probe import Prober
from kernel_smith.trajectories.mine.refusal import Refused
from kernel_smith.trajectories.mine.render import task_text
from kernel_smith.trajectories.mine.safety import check_harmless
from kernel_smith.trajectories.mine.state import (
    OTHER_FOLDER,
    Entry,
    Ledger,
    Origin,
    Summary,
    summarise,
    write_summary,
)

Report = Callable[[str], None]


@dataclass(frozen=True)
class MineSettings:
    sources: Sequence[str]
    folder: Path
    limit: int | None = None
    """How many more classes to look at."""
    workers: int = 1
    seconds: int = 20
    """For trying one class out."""
    admission: bool = True


def mine(settings: MineSettings, report: Report) -> Summary:
    """Look at every class that was not looked at before; the folder then has all tasks."""
    libraries = [read_library(source) for source in settings.sources]
    ledger = Ledger(settings.folder)
    missing: set[str] = set()
    try:
        with ExitStack() as stack:
            run = _Run(settings, ledger, report, stack, missing)
            for library in libraries:
                run.mine_library(library)
    finally:
        ledger.close()
        summary = summarise(ledger.entries.values(), missing)
        write_summary(settings.folder, summary)
    return summary


@dataclass(frozen=True)
class _Piece:
    """A class on its way to become a task."""

    origin: Origin
    extract: Extract
    structure: str


class _Run:
    def __init__(
        self,
        settings: MineSettings,
        ledger: Ledger,
        report: Report,
        stack: ExitStack,
        missing: set[str],
    ) -> None:
        self._missing = missing
        self._settings = settings
        self._ledger = ledger
        self._report = report
        self._left = settings.limit
        self._structures = {e.structure for e in ledger.entries.values() if e.structure}
        self._names = {e.task for e in ledger.entries.values() if e.task}
        self._engine = stack.enter_context(LocalEngine()) if settings.admission else None
        self._pool = stack.enter_context(ThreadPoolExecutor(settings.workers))
        # Closed before the pool, so that nobody waits for an answer that nobody reads.
        self._probers: SimpleQueue[Prober] = SimpleQueue()
        for _ in range(settings.workers):
            self._probers.put(stack.enter_context(Prober(settings.seconds)))

    def mine_library(self, library: Library) -> None:
        self._report(f"reading {counted(len(library.files), 'file')} of {library.name}")
        shelf = Shelf.of(library)
        waiting: deque[tuple[_Piece, Future[Plan]]] = deque()
        try:
            for piece in self._pieces(library, shelf):
                waiting.append((piece, self._pool.submit(self._try, piece)))
                if len(waiting) > 2 * self._settings.workers:
                    self._finish(*waiting.popleft())
            while waiting:
                self._finish(*waiting.popleft())
        finally:
            for _, future in waiting:
                future.cancel()

    def _pieces(self, library: Library, shelf: Shelf) -> Iterator[_Piece]:
        """What stands alone and is new; the rest goes to the ledger at once."""
        for file, node in module_classes(shelf):
            origin = _origin(library, file, node)
            if origin.key in self._ledger.entries:
                continue
            if self._left is not None:
                if self._left == 0:
                    return
                self._left -= 1
            try:
                yield self._extract(shelf, file, node, origin)
            except Refused as refused:
                self._refuse(origin, refused, stage="extract")

    def _extract(
        self, shelf: Shelf, file: SourceFile, node: ast.ClassDef, origin: Origin
    ) -> _Piece:
        found = extract(shelf, file, node)
        check_harmless(found.text)
        piece = _Piece(origin, found, structure(found.text))
        if piece.structure in self._structures:
            raise Refused("duplicate")
        self._structures.add(piece.structure)
        return piece

    def _try(self, piece: _Piece) -> Plan:
        prober = self._probers.get()
        try:
            return prober.find_plan(piece.extract)
        finally:
            self._missing |= prober.missing
            self._probers.put(prober)

    def _finish(self, piece: _Piece, future: Future[Plan]) -> None:
        self._report(f"{len(self._names)} tasks; {piece.origin.file} {piece.origin.class_name}")
        try:
            plan = future.result()
        except Refused as refused:
            self._refuse(piece.origin, refused, stage="run", structure=piece.structure)
            return
        family = family_of(piece.origin.class_name, piece.extract.body)
        text = task_text(piece.extract, plan, family, str(piece.origin))
        path = self._free_path(piece.origin, text)
        with writing(self._settings.folder, OTHER_FOLDER):
            path.write_text(text, "utf-8")
        try:
            self._admit(path)
        except Refused as refused:
            path.unlink(missing_ok=True)
            self._refuse(piece.origin, refused, stage="admission", structure=piece.structure)
            return
        self._names.add(path.stem)
        self._ledger.add(
            Entry(
                origin=piece.origin,
                outcome="written",
                stage="done",
                structure=piece.structure,
                task=path.stem,
                family=family,
            )
        )

    def _admit(self, path: Path) -> None:
        """The project's own examination, as `kernel-smith tasks check` does it."""
        try:
            task = read_task(path)
            # The large one ran before, and differs in its size alone, at many times the cost.
            small = tuple(w for w in task.workloads if w.name == "small")
            examined = task.model_copy(update={"workloads": small})
            findings = self._engine.examine(examined) if self._engine is not None else []
        except BadInput as error:
            raise Refused("not-a-task", error.what[:300]) from None
        if findings:
            names = sorted({finding.value for _, finding in findings})
            raise Refused("not-admitted", ", ".join(names))

    def _refuse(self, origin: Origin, refused: Refused, *, stage: str, structure: str = "") -> None:
        self._ledger.add(
            Entry.model_validate(
                {
                    "origin": origin,
                    "outcome": "refused",
                    "reason": refused.reason,
                    "detail": refused.detail,
                    "stage": stage,
                    "structure": structure,
                }
            )
        )

    def _free_path(self, origin: Origin, text: str) -> Path:
        """A file that is not there, or that was written just before somebody stopped us."""
        words = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", origin.class_name)
        package = re.sub(r"\W+", "_", origin.package.partition(".")[0])
        base = re.sub(r"_+", "_", f"{package}_{words}".lower()).strip("_")
        path, number = self._settings.folder / f"{base}.py", 1
        while path.stem in self._names or (path.exists() and not _holds(path, text)):
            number += 1
            path = path.with_name(f"{base}_{number}.py")
        return path


def _holds(path: Path, text: str) -> bool:
    try:
        return path.read_bytes() == text.encode()
    except OSError:
        return False


def _origin(library: Library, file: SourceFile, node: ast.ClassDef) -> Origin:
    return Origin(
        package=library.name,
        version=library.version,
        licence=library.licence,
        file=file.path,
        line=node.lineno,
        class_name=node.name,
    )
