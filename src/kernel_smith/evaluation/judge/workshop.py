"""Compiles one candidate's kernels, in a sandbox of their own, outside the candidate's process.

Objects come from a content-addressed cache that only the judge writes. The candidate gets a
private, read-only folder with copies of its own objects and nothing else. A second folder holds the
same objects disarmed: every kernel returns at once.
"""

from __future__ import annotations

import ast
import shutil
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.evaluation.backends import Backend, Route
from kernel_smith.evaluation.judge.nursery import Nursery, Place
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.sandbox.confine import installation_of
from kernel_smith.inline.build import BuildResult, Ran, build
from kernel_smith.inline.cache import ObjectCache
from kernel_smith.inline.diagnostics import parse, relocate
from kernel_smith.inline.dialects import SOURCE_NAME, recipe
from kernel_smith.inline.literals import Literal
from kernel_smith.inline.resources import KernelResources
from kernel_smith.inline.toolchain import find_toolchain
from kernel_smith.records import Candidate, Diagnostic, Limits, Reason

_PRODUCT_NAME = "kernel.so"


class Folders(NamedTuple):
    """Where a candidate's processes find what was compiled for them."""

    armed: Path
    disarmed: Path

    @classmethod
    def new(cls, nursery: Nursery) -> Folders:
        return cls(nursery.new_folder("objects"), nursery.new_folder("objects"))


class Maker(Protocol):
    """Compiles for one candidate: for its process, and for the one whose kernels do nothing."""

    armed: Path
    disarmed: Path
    can_disarm: bool
    compiling_seconds: float
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
    def provide(self, need: Any) -> dict[str, Any]: ...
    def provide_disarmed(self, need: Any) -> dict[str, Any]: ...
    def close(self) -> None: ...


class Workshop:
    def __init__(
        self,
        candidate: Candidate,
        tree: ast.Module,
        backend: Backend,
        nursery: Nursery,
        place: Place,
        limits: Limits,
        route: Route = "native",
        folders: Folders | None = None,
        arch: str | None = None,
    ) -> None:
        self._candidate = candidate
        self._backend = backend
        self._nursery = nursery
        self._place = place
        self._limits = limits
        self._route = route
        self._arch = arch
        self._cache = ObjectCache()
        self._literals = backend.sources(tree)
        self._built: dict[tuple[str, tuple[str, ...]], str] = {}
        self._failed: dict[tuple[str, tuple[str, ...]], Rejected] = {}
        self._owns_folders = folders is None
        self.armed, self.disarmed = folders or Folders.new(nursery)
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
        return [source for source, _ in self._built]

    def products(self) -> list[Path]:
        return [self.armed / name for name in self._built.values()]

    def build_ahead(self) -> None:
        """Compile what can be read from the source. Raises `Rejected` with mapped diagnostics.

        A file may hold sources for several machines and ask for one of them. So, as long as one
        compiles, the failure of another only counts once the candidate asks for it.
        """
        for literal in self._literals:
            try:
                self._make(literal.source, literal.flags, literal)
            except Rejected as rejected:
                self._failed[literal.source, literal.flags] = rejected
        if self._failed and not self._built:
            raise next(iter(self._failed.values()))

    def provide(self, need: Any, *, disarmed: bool = False) -> dict[str, Any]:
        """Answer a candidate that asks for an object while it runs."""
        try:
            source, flags = str(need["source"]), tuple(str(flag) for flag in need["flags"])
            dialect = str(need["dialect"])
        except (KeyError, TypeError):
            return {"log": "malformed request"}
        if dialect != self._backend.name:
            return {"log": f"this evaluation compiles {self._backend.name}, not {dialect}"}
        try:
            name = self._make(source, flags, self._find_literal(source))
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

    def _make(self, source: str, flags: tuple[str, ...], literal: Literal | None) -> str:
        """Build (or find) one object and put both forms of it in the candidate's folders."""
        key = (source, flags)
        if key in self._built:
            return self._built[key]
        if key in self._failed:
            raise self._failed[key]
        try:
            result = build(
                source,
                flags,
                self._backend.name,
                cache=self._cache,
                timeout=self._limits.compile_seconds,
                run=self._run_compiler,
                scratch=self._nursery.folder,  # removed even if this process is killed
                route=self._route,
                arch=self._arch,
            )
            if not result.cached:
                self.compiling_seconds += result.seconds
            if result.path is None:
                raise self._rejection(result, literal)
            self.resources += result.resources
            forbidden = self._backend.forbidden_symbols(result.path)
        except BadInput as error:
            raise Rejected(Reason.COMPILER_REJECTED, error.what, log=error.hint) from None
        if forbidden:
            raise Rejected(Reason.FORBIDDEN_SYMBOL, ", ".join(forbidden))
        name = f"kernels-{len(self._built)}.so"
        shutil.copyfile(result.path, self.armed / name)
        try:
            self._backend.disarm(result.path, self.disarmed / name)
            (self.disarmed / name).chmod(0o555)
        except MissingPrerequisite:
            self.can_disarm = False
        (self.armed / name).chmod(0o555)
        self._built[key] = name
        return name

    def _rejection(self, result: BuildResult, literal: Literal | None) -> Rejected:
        first_line = literal.first_line if literal else 1
        shown = self._candidate.name if literal else "<generated source>"
        log = relocate(result.log, SOURCE_NAME, first_line, shown)
        if result.timed_out:
            seconds = self._limits.compile_seconds
            return Rejected(
                Reason.COMPILER_TIMEOUT, f"stopped after {seconds:g} s or out of memory", log=log
            )
        messages = parse(result.log, SOURCE_NAME, first_line)
        diagnostics = tuple(
            Diagnostic(line=m.line, severity=m.severity, message=m.text) for m in messages
        )
        errors = [d for d in diagnostics if d.severity == "error"]
        message = ""
        if errors:
            where = f"{shown}:{errors[0].line}: " if errors[0].line else ""
            message = where + errors[0].message
        return Rejected(Reason.COMPILER_REJECTED, message, log=log, diagnostics=diagnostics)

    def _run_compiler(self, argv: list[str], folder: Path, timeout: float) -> Ran:
        """Compile in a sandbox: a source may try to read files or to overwhelm the compiler."""
        code, log = self._nursery.run_program(
            self._place,
            self._limits,
            argv,
            files={SOURCE_NAME: (folder / SOURCE_NAME).read_text(encoding="utf-8")},
            product=_PRODUCT_NAME,
            target=folder / _PRODUCT_NAME,
            timeout=timeout,
            readable=self._compiler_files(),
        )
        return Ran(-1 if code is None else code, log, timed_out=code is None)

    def _compiler_files(self) -> tuple[Path, ...]:
        """The compiler's own, and headers of ours."""
        dialect, route = self._backend.name, self._route
        compiler = find_toolchain(dialect, route, self._arch).compiler
        return (*installation_of(compiler), *recipe(dialect, route).headers)

    def close(self) -> None:
        if self._owns_folders:
            for folder in (self.armed, self.disarmed):
                shutil.rmtree(folder, ignore_errors=True)
