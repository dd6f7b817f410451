"""Makes a seed in this process: each workload is captured and rewritten, and the result tried."""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.proposers.seed.assemble import Specialisation, assemble
from kernel_smith.proposers.seed.cpp_text import read_cpp_kernel
from kernel_smith.proposers.seed.generated import Generated, read_generated
from kernel_smith.proposers.seed.inside.capture import Captured, capture
from kernel_smith.proposers.seed.inside.check import check
from kernel_smith.proposers.seed.inside.device_time import DeviceTime
from kernel_smith.proposers.seed.inside.memory import first_that_fits
from kernel_smith.proposers.seed.inside.needs import explained, explained_for
from kernel_smith.proposers.seed.inside.pretend import has_gpu, pretend_cuda
from kernel_smith.proposers.seed.inside.task_module import load_task
from kernel_smith.proposers.seed.inside.workbench import Workbench
from kernel_smith.proposers.seed.own_cpp import CppKernels
from kernel_smith.proposers.seed.own_kernels import OwnKernels
from kernel_smith.proposers.seed.own_triton import TritonKernels
from kernel_smith.proposers.seed.recipes import DEFAULT, REWRITTEN, Recipe
from kernel_smith.proposers.seed.record import Seed
from kernel_smith.proposers.seed.reference import read_reference
from kernel_smith.proposers.seed.refusal import refused
from kernel_smith.proposers.seed.triton_epilogues import fuse_epilogues
from kernel_smith.proposers.seed.triton_text import read_triton_kernel
from kernel_smith.proposers.seed.wrapper import Launch, rewrite
from kernel_smith.records import MAX_SOURCE, Precision, Task, Workload

Progress = Callable[[str], None]

_BACKENDS = {"cpu": "cpp", "cuda": "triton"}


def build_seed(
    task: Task,
    device: str,
    workloads: Sequence[str],
    progress: Progress,
    recipe: Recipe = DEFAULT,
    time: DeviceTime | None = None,
    *,
    compare: bool = True,
) -> Seed:
    """Compile the chosen workloads and write the candidate. Needs torch, runs the task's code.

    `compare` it with the reference, where there is a device; else whoever asks will judge it.
    """
    backend = _BACKENDS[device]
    pretended = device == "cuda" and not has_gpu()
    if device == "cuda":
        _require_triton()
        _compute_as_allowed(task.precision)
    if pretended:
        pretend_cuda()
    chosen = [workload for workload in task.workloads if workload.name in workloads]
    with explained(f"task {task.name}"):
        workbench = Workbench(load_task(task), device, pretended, time)
        compiling = _Compiling(task, backend, workbench, chosen, recipe, progress)
        written, ours = compiling.programs()
        if recipe.rewrites and not written.rewrites:
            raise refused("there is nothing to rewrite in its graph")
        if not written.count:
            raise refused("the compiler leaves all of it to the library")
        if len(written.source) > MAX_SOURCE:
            raise refused(f"it has {len(written.source)} characters, of at most {MAX_SOURCE}")
        fits = len(ours.source) <= MAX_SOURCE
        other = ours.source if fits and len(ours.calls) < len(written.calls) else ""
        compared: dict[str, float] = {}
        notes: list[str] = []
        if compare and not pretended:
            progress(f"{task.name}: comparing the seed with the reference")
            compared = check(written.source, workbench, chosen)
            if other:
                other, notes = _checked(other, workbench, chosen)
    return Seed(
        task=task.name,
        backend=backend,
        source=written.source,
        without_library=other,
        workloads=tuple(workload.name for workload in chosen),
        kernels=written.count,
        library_calls=written.calls,
        notes=(*_notes(task, written, compared, pretended), *_rewrites(written, recipe), *notes),
        rewrites=written.rewrites,
        compared=compared,
        torch=torch.__version__,
        recipe=recipe.name,
    )


def _compute_as_allowed(precision: Precision) -> None:
    """Let products be rounded to TF32 where the task allows it, as the judge does, and only there:
    the compiler writes into its kernels what holds while it compiles."""
    coarse = precision is not Precision.STRICT
    torch.set_float32_matmul_precision("high" if coarse else "highest")
    torch.backends.cudnn.allow_tf32 = coarse


def _checked(
    source: str, workbench: Workbench, workloads: Sequence[Workload]
) -> tuple[str, list[str]]:
    """Return a program that is right, or nothing and why: the one with library calls may still
    be."""
    try:
        check(source, workbench, workloads)
    except BadInput as error:
        return "", [f"without kernels of our own: {error.what}"]
    return source, []


@dataclass(frozen=True)
class _Written:
    source: str
    count: int  # of kernels
    calls: tuple[str, ...]  # of the library
    rewrites: tuple[str, ...]


@dataclass(frozen=True)
class _Compiling:
    """A task's workloads on their way to a program."""

    task: Task
    backend: str
    workbench: Workbench
    workloads: Sequence[Workload]
    recipe: Recipe
    progress: Progress

    def programs(self) -> tuple[_Written, _Written]:
        """Return the one to hand out, and the one with kernels of our own; they may be the same."""
        captured = self._compile()
        plain = self._write(captured, own=False)
        usable = bool(plain.count) and (self.task.library_calls or not plain.calls)
        if not plain.calls or (usable and not self._wants_ours):
            return plain, plain
        if self.workbench.device == "cuda" and any(one.attends for one in captured.values()):
            captured = self._compile(whole_attention=True)
        ours = self._write(captured, own=True)
        return plain if usable and not self.recipe.authored else ours, ours

    @property
    def _wants_ours(self) -> bool:
        return self.recipe is DEFAULT or self.recipe.authored

    def _compile(self, *, whole_attention: bool = False) -> dict[str, Captured]:
        reference = read_reference(self.task.source)
        also = ", attention in one piece" if whole_attention else ""
        captured = {}
        for workload in self.workloads:
            self.progress(f"{self.task.name}: compiling workload {workload.name}{also}")
            step = functools.partial(
                capture,
                self.workbench,
                workload,
                reference,
                self.recipe,
                whole_attention=whole_attention,
            )
            with explained_for(self.workbench.module, workload):
                # A second time if the device was full, when nothing of ours is there.
                captured[workload.name] = first_that_fits([step, step], self.workbench.clear)
        return captured

    def _write(self, captured: dict[str, Captured], *, own: bool) -> _Written:
        """With the library's calls as the compiler has them, or with kernels of our own."""
        precision = self.task.precision if own else None
        parts = [_specialise(one, name, self.backend, precision) for name, one in captured.items()]
        reference = read_reference(self.task.source)
        source, count = assemble(reference, parts, self.backend, self._title())
        calls = tuple(dict.fromkeys(call for part in parts for call in part.library_calls))
        rewrites = dict.fromkeys(name for one in captured.values() for name in one.rewrites)
        return _Written(source, count, calls, tuple(rewrites))

    def _title(self) -> str:
        how = "" if self.recipe is DEFAULT else f", {self.recipe.summary}"
        return f"What torch.compile makes of {self.task.name}{how}; call it under torch.no_grad()."


def _notes(
    task: Task, written: _Written, compared: dict[str, float], pretended: bool
) -> tuple[str, ...]:
    """Say what a user would not expect of the seed."""
    notes = []
    if pretended:
        notes.append("made without a GPU: block sizes are the compiler's first guess, nothing ran")
    for workload, share in compared.items():
        if share < 1:
            notes.append(
                f"on workload {workload} {share:.1%} of the elements were compared with the"
                " reference's, taken at random: two whole results find no room"
            )
    if written.calls and not task.library_calls:
        notes.append("the task forbids library calls, and this seed makes some")
    return tuple(notes)


def _rewrites(written: _Written, recipe: Recipe) -> tuple[str, ...]:
    what = ", ".join(written.rewrites)
    if not what:
        return ()
    if recipe.rewrites:
        return (f"rewritten: {what}",)
    return (f"--recipe {REWRITTEN.name} has less to compute: {what}",)


def _require_triton() -> None:
    try:
        import triton  # noqa: F401
    except ImportError:
        raise MissingPrerequisite(
            "Triton is not installed", hint="pip install 'kernel-smith[triton]'"
        ) from None


def _specialise(
    captured: Captured, workload: str, backend: str, own_precision: Precision | None
) -> Specialisation:
    """`own_precision`: that of kernels of our own, if they are to take the library's place."""
    generated = read_generated(captured.code)
    names = dict(zip(generated.arguments, (i.name for i in captured.inputs), strict=True))
    kernels, launch = _triton(generated, captured) if captured.configs else _cpp(generated)
    types = dict(zip(generated.arguments, (i.dtype for i in captured.inputs), strict=True))
    ours = _own_kernels(generated, types, backend, own_precision) if own_precision else None
    body = rewrite(generated.body, names, set(kernels), launch, ours)
    kernels |= ours.texts if ours else {}
    if ours and captured.configs:
        kernels |= fuse_epilogues(body.statements, kernels)
    statement = body.statements[-1]
    match statement:
        case ast.Return(value=ast.Tuple(elts=values)):
            returned = captured.outputs([ast.unparse(value) for value in values])
        case _:
            raise refused("the compiler's output ends without a tuple")
    body.statements[-1] = ast.parse(f"return {returned}").body[0]
    written = body.text
    named = set(re.findall(r"\w+", written))
    used = {name: text for name, text in kernels.items() if name in named}
    return Specialisation(
        workload=workload,
        key=captured.key,
        spare_key=captured.spare_key,
        inputs=captured.inputs,
        kernels=used,
        body=written,
        library_calls=tuple(body.library_calls),
    )


def _own_kernels(
    generated: Generated, types: dict[str, str], backend: str, precision: Precision
) -> OwnKernels:
    if backend == "cpp":
        return CppKernels(generated.body, types)
    return TritonKernels(generated.body, types, precision)


def _triton(generated: Generated, captured: Captured) -> tuple[dict[str, str], Launch]:
    kernels = {name: read_triton_kernel(name, text) for name, text in generated.kernels.items()}

    def launch(name: str, arguments: list[ast.expr]) -> ast.expr:
        return kernels[name].launch(arguments, captured.configs[name])

    return {name: kernel.text for name, kernel in kernels.items()}, launch


def _cpp(generated: Generated) -> tuple[dict[str, str], Launch]:
    def launch(name: str, arguments: list[ast.expr]) -> ast.expr:
        function = ast.Attribute(ast.Name("kernels", ast.Load()), name, ast.Load())
        return ast.Call(function, arguments, [])

    texts = generated.kernels.items()
    return {name: read_cpp_kernel(name, text) for name, text in texts}, launch
