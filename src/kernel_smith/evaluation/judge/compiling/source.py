"""Compiles one candidate's kernels, in a sandbox of their own, outside the candidate's process.

Objects come from a content-addressed cache that only the judge writes. The candidate gets a
private, read-only folder with copies of its own objects and nothing else. A second folder holds the
same objects disarmed: every kernel returns at once.
"""

from __future__ import annotations

import ast
import contextlib
import functools
import shutil
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.evaluation.backends import Backend, Route
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.sandbox.confine import installation_of
from kernel_smith.inline.build import BuildResult, Ran, build
from kernel_smith.inline.cache import ObjectCache
from kernel_smith.inline.diagnostics import parse, relocate
from kernel_smith.inline.dialects import EXTENSION, SOURCE_NAME, recipe
from kernel_smith.inline.literals import Literal, Piece
from kernel_smith.inline.resources import KernelResources
from kernel_smith.inline.toolchain import find_toolchain
from kernel_smith.records import Candidate, Diagnostic, Limits, Reason

_PRODUCT_NAME = "kernel.so"
_LONGER = 3.0
_MORE_SCRATCH = 1 << 30


class Text(NamedTuple):
    """What is compiled."""

    dialect: str
    source: str
    flags: tuple[str, ...]


class Folders(NamedTuple):
    """Where a candidate's processes find what was compiled for them."""

    armed: Path
    disarmed: Path

    @classmethod
    def new(cls, processes: ProcessPool) -> Folders:
        return cls(processes.new_folder("objects"), processes.new_folder("objects"))


class Maker(Protocol):
    """Compiles for one candidate: for its process, and for the one whose kernels do nothing."""

    armed: Path
    disarmed: Path
    can_disarm: bool
    compiling_seconds: float
    resources: list[KernelResources]
    """What the compiler said of kernels for a GPU."""
    rejection: Rejected | None
    """Why the last compilation failed, unless the candidate got over it."""

    @property
    def has_kernels(self) -> bool: ...
    @property
    def kernel_texts(self) -> list[str]:
        """What it compiled that stands in the candidate as text."""

    def products(self) -> list[Path]:
        """What it made for the candidate so far."""

    def build_ahead(self) -> None: ...
    def build_variants(self, sources: Sequence[str], place: CoreSet, deadline: float) -> list[bool]:
        """Compile the kernels of other programs like the candidate, side by side. Returns which of
        the programs can be loaded; a compiler that rejects one has its say then."""

    def provide(self, need: Any) -> dict[str, Any]: ...
    def provide_disarmed(self, need: Any) -> dict[str, Any]: ...
    def close(self) -> None: ...


class SourceCompiler:
    def __init__(
        self,
        candidate: Candidate,
        tree: ast.Module,
        backend: Backend,
        processes: ProcessPool,
        place: CoreSet,
        limits: Limits,
        route: Route = "native",
        folders: Folders | None = None,
        arch: str | None = None,
        meanwhile: Callable[[], AbstractContextManager[None]] = contextlib.nullcontext,
    ) -> None:
        """`meanwhile` surrounds what is compiled for a process that waits for it."""
        self._candidate = candidate
        self._backend = backend
        self._processes = processes
        self._place = place
        self._limits = limits
        self._route = route
        self._arch = arch
        self._meanwhile = meanwhile
        self._cache = ObjectCache()
        self._literals = backend.sources(tree)
        self._built: dict[Text, str] = {}
        self._failed: dict[Text, Rejected] = {}
        self._owns_folders = folders is None
        self.armed, self.disarmed = folders or Folders.new(processes)
        self.can_disarm = True
        self.compiling_seconds = 0.0
        self.rejection: Rejected | None = None
        self.resources: list[KernelResources] = []
        """What the compiler says of the kernels, where it compiles for a GPU."""

    @property
    def has_kernels(self) -> bool:
        return bool(self._built)

    @property
    def kernel_texts(self) -> list[str]:
        return [text.source for text in self._built]

    def products(self) -> list[Path]:
        return [self.armed / name for name in self._built.values()]

    def build_ahead(self) -> None:
        """Compile what can be read from the source. Raises `Rejected` with mapped diagnostics.

        A file may hold sources for several machines and ask for one of them. So, as long as one
        compiles, the failure of another only counts once the candidate asks for it.
        """
        for literal in self._literals:
            text = _text(literal)
            try:
                self._make(text, literal)
            except Rejected as rejected:
                self._failed[text] = rejected
        if self._failed and not self._built:
            raise next(iter(self._failed.values()))

    def build_variants(self, sources: Sequence[str], place: CoreSet, deadline: float) -> list[bool]:
        """As every maker does: one compiler on each of the judge's cores of `place`."""
        wanted = [
            [_text(literal) for literal in self._backend.sources(ast.parse(source))]
            for source in sources
        ]
        texts = dict.fromkeys(text for some in wanted for text in some)
        with ThreadPoolExecutor(len(place.judge)) as threads:
            built = dict(
                zip(
                    texts,
                    threads.map(lambda text: self._try_to_build(text, place, deadline), texts),
                    strict=True,
                )
            )
        self._failed |= {text: end for text, end in built.items() if isinstance(end, Rejected)}
        return [all(built[text] is not None for text in some) for some in wanted]

    def _try_to_build(
        self, text: Text, place: CoreSet, deadline: float
    ) -> BuildResult | Rejected | None:
        """Build one object in time, into the cache; None if it is too late to begin."""
        if time.monotonic() > deadline:
            return None
        try:
            return self._build(text, place, None)
        except Rejected as rejected:
            return rejected

    def provide(self, need: Any, *, disarmed: bool = False) -> dict[str, Any]:
        """Answer a candidate that asks for an object while it runs."""
        try:
            source, flags = str(need["source"]), tuple(str(flag) for flag in need["flags"])
            text = Text(str(need["dialect"]), source, flags)
        except (KeyError, TypeError):
            return {"log": "malformed request"}
        if text.dialect.removesuffix(EXTENSION) != self._backend.name:
            return {"log": f"this evaluation compiles {self._backend.name}, not {text.dialect}"}
        try:
            with self._meanwhile():
                name = self._make(text, self._find_literal(source))
        except Rejected as rejected:
            self.rejection = rejected
            return {"log": str(rejected.evidence.get("log") or rejected.message)}
        self.rejection = None  # whatever failed before, the candidate got over it
        folder = self.disarmed if disarmed else self.armed
        return {"path": str(folder / name)}

    def provide_disarmed(self, need: Any) -> dict[str, Any]:
        return self.provide(need, disarmed=True)

    def _find_literal(self, source: str) -> Literal | None:
        return next((item for item in self._literals if item.source == source), None)

    def _make(self, text: Text, literal: Literal | None) -> str:
        """Build (or find) one object and put both forms of it in the candidate's folders."""
        if text in self._built:
            return self._built[text]
        if text in self._failed:
            raise self._failed[text]
        result = self._build(text, self._place, literal)
        if not result.cached:
            self.compiling_seconds += result.seconds
        self.resources += result.resources
        assert result.path is not None
        name = f"kernels-{len(self._built)}.so"
        shutil.copyfile(result.path, self.armed / name)
        try:
            self._backend.disarm(result.path, self.disarmed / name)
            (self.disarmed / name).chmod(0o555)
        except MissingPrerequisite:
            self.can_disarm = False
        (self.armed / name).chmod(0o555)
        self._built[text] = name
        return name

    def _build(self, text: Text, place: CoreSet, literal: Literal | None) -> BuildResult:
        """Compile one text, or find it in the cache. Raises `Rejected` if there is no object."""
        limits = self._limits_for(text.dialect)
        try:
            result = build(
                text.source,
                text.flags,
                text.dialect,
                cache=self._cache,
                timeout=limits.compile_seconds,
                run=functools.partial(self._run_compiler, text.dialect, limits, place),
                scratch=self._processes.folder,  # removed even if this process is killed
                route=self._route,
                arch=self._arch,
            )
            if result.path is None:
                raise self._rejection(result, literal, limits.compile_seconds)
            forbidden = self._backend.forbidden_symbols(result.path)
        except BadInput as error:
            raise Rejected(Reason.COMPILER_REJECTED, error.what, log=error.hint) from None
        if forbidden:
            raise Rejected(Reason.FORBIDDEN_SYMBOL, ", ".join(forbidden))
        return result

    def _limits_for(self, dialect: str) -> Limits:
        """PyTorch's headers take a minute to compile, and room for what compilers note down."""
        if not dialect.endswith(EXTENSION):
            return self._limits
        more = {
            "compile_seconds": _LONGER * self._limits.compile_seconds,
            "scratch_bytes": max(_MORE_SCRATCH, self._limits.scratch_bytes),
        }
        return self._limits.model_copy(update=more)

    def _rejection(self, result: BuildResult, literal: Literal | None, seconds: float) -> Rejected:
        shown = self._candidate.name if literal else "<generated source>"
        log = result.log
        for piece in literal.pieces if literal else (Piece(SOURCE_NAME, "", 1),):
            log = relocate(log, piece.name, piece.first_line, SOURCE_NAME)
        messages = parse(log, SOURCE_NAME)
        log = relocate(log, SOURCE_NAME, 1, shown)
        if result.timed_out:
            return Rejected(
                Reason.COMPILER_TIMEOUT, f"stopped after {seconds:g} s or out of memory", log=log
            )
        diagnostics = tuple(
            Diagnostic(line=m.line, severity=m.severity, message=m.text) for m in messages
        )
        errors = [d for d in diagnostics if d.severity == "error"]
        message = ""
        if errors:
            where = f"{shown}:{errors[0].line}: " if errors[0].line else ""
            message = where + errors[0].message
        return Rejected(Reason.COMPILER_REJECTED, message, log=log, diagnostics=diagnostics)

    def _run_compiler(
        self,
        dialect: str,
        limits: Limits,
        place: CoreSet,
        argv: list[str],
        folder: Path,
        timeout: float,
    ) -> Ran:
        """Compile in a sandbox: a source may try to read files or to overwhelm the compiler."""
        code, log = self._processes.run_program(
            place,
            limits,
            argv,
            files={SOURCE_NAME: (folder / SOURCE_NAME).read_text(encoding="utf-8")},
            product=_PRODUCT_NAME,
            target=folder / _PRODUCT_NAME,
            timeout=timeout,
            readable=self._compiler_files(dialect),
        )
        return Ran(-1 if code is None else code, log, timed_out=code is None)

    def _compiler_files(self, dialect: str) -> tuple[Path, ...]:
        """The compiler's own, and headers of ours."""
        compiler = find_toolchain(dialect, self._route, self._arch).compiler
        return (*installation_of(compiler), *recipe(dialect, self._route).headers)

    def close(self) -> None:
        if self._owns_folders:
            for folder in (self.armed, self.disarmed):
                shutil.rmtree(folder, ignore_errors=True)


def _text(literal: Literal) -> Text:
    return Text(literal.dialect, literal.source, literal.flags)
