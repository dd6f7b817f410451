"""Makes a seed in this process: each workload is captured and rewritten, and the result tried."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence

import torch

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.proposers.seed.assemble import Specialisation, assemble
from kernel_smith.proposers.seed.cpp_text import read_cpp_kernel
from kernel_smith.proposers.seed.generated import Generated, read_generated
from kernel_smith.proposers.seed.inside.capture import Captured, capture
from kernel_smith.proposers.seed.inside.check import check
from kernel_smith.proposers.seed.inside.pretend import has_gpu, pretend_cuda
from kernel_smith.proposers.seed.inside.task_module import load_task
from kernel_smith.proposers.seed.record import Seed
from kernel_smith.proposers.seed.reference import read_reference
from kernel_smith.proposers.seed.refusal import refused
from kernel_smith.proposers.seed.triton_text import read_triton_kernel
from kernel_smith.proposers.seed.wrapper import Launch, rewrite
from kernel_smith.records import Task

Progress = Callable[[str], None]

_BACKENDS = {"cpu": "cpp", "cuda": "triton"}


def build_seed(task: Task, device: str, workloads: Sequence[str], progress: Progress) -> Seed:
    """Compile the chosen workloads and write the candidate. Needs torch, runs the task's code."""
    backend = _BACKENDS[device]
    pretended = device == "cuda" and not has_gpu()
    if device == "cuda":
        _require_triton()
    if pretended:
        pretend_cuda()
    reference = read_reference(task.source)
    module = load_task(task)
    parts, outputs = [], []
    chosen = [workload for workload in task.workloads if workload.name in workloads]
    for workload in chosen:
        progress(f"{task.name}: compiling workload {workload.name}")
        captured = capture(module, workload, reference, device, pretended)
        outputs.append(captured)
        parts.append(_specialise(captured, workload.name))
    source, count = assemble(reference, parts, backend, _title(task))
    if not count:
        raise refused("the compiler leaves all of it to the library")
    notes = []
    if pretended:
        notes.append("made without a GPU: block sizes are the compiler's first guess, nothing ran")
    else:
        progress(f"{task.name}: comparing the seed with the reference")
        check(source, module, chosen, device)
    calls = tuple(dict.fromkeys(call for part in parts for call in part.library_calls))
    if calls and not task.library_calls:
        notes.append("the task forbids library calls, and this seed makes some")
    return Seed(
        task=task.name,
        backend=backend,
        source=source,
        workloads=tuple(workload.name for workload in chosen),
        kernels=count,
        library_calls=calls,
        notes=tuple(notes),
        torch=torch.__version__,
    )


def _title(task: Task) -> str:
    return f"What torch.compile makes of {task.name}; call it under torch.no_grad()."


def _require_triton() -> None:
    try:
        import triton  # noqa: F401
    except ImportError:
        raise MissingPrerequisite(
            "Triton is not installed", hint="pip install 'kernel-smith[triton]'"
        ) from None


def _specialise(captured: Captured, workload: str) -> Specialisation:
    generated = read_generated(captured.code)
    names = dict(zip(generated.arguments, (i.name for i in captured.inputs), strict=True))
    kernels, launch = _triton(generated, captured) if captured.configs else _cpp(generated)
    body = rewrite(generated.body, names, set(kernels), launch)
    statement = body.statements[-1]
    match statement:
        case ast.Return(value=ast.Tuple(elts=values)):
            returned = captured.outputs([ast.unparse(value) for value in values])
        case _:
            raise refused("the compiler's output ends without a tuple")
    body.statements[-1] = ast.parse(f"return {returned}").body[0]
    used = {name: text for name, text in kernels.items() if name in body.text}
    return Specialisation(
        workload=workload,
        key=captured.key,
        spare_key=captured.spare_key,
        inputs=captured.inputs,
        kernels=used,
        body=body.text,
        library_calls=tuple(body.library_calls),
    )


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
