"""A kernel as one module of another project: kernel, reference, and who answers which call."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from kernel_smith.errors import BadInput
from kernel_smith.records import Precision
from kernel_smith.shipping.found import Optimized, spec_of
from kernel_smith.shipping.runtime.replacement import init_arguments
from kernel_smith.shipping.runtime.signatures import verified_arguments
from kernel_smith.shipping.runtime.spec import execute
from kernel_smith.shipping.targets.renaming import renamed
from kernel_smith.shipping.targets.tidying import tidied
from kernel_smith.shipping.theirs import take_names

_TEMPLATES = Path(__file__).parent.parent / "templates"
_MOST_IN_FLOAT32 = 1e-4
_AS_PACKAGE = "ship it as a package: leave out --project and --checkout"


@dataclass(frozen=True)
class Op:
    """What the texts of an operation are made of."""

    name: str
    family: str
    summary: str
    kernel: str
    reference: str
    inputs: str
    workloads: dict[str, tuple[dict[str, Any], tuple[Any, ...], tuple[Any, ...]]]
    """Name -> sizes, arguments of the constructor, and arguments of a call without memory."""
    allowed: float | None
    """The largest error that was allowed, of all workloads."""
    is_strict: bool
    """Is float32 to be computed in float32?"""
    seconds: dict[str, dict[str, float]]
    machine: str

    @property
    def is_interpretable(self) -> bool:
        """Triton's interpreter rounds to 8 bits in another way than GPUs do."""
        return "float8" not in self.kernel

    @property
    def kind(self) -> str:
        """The name of its class."""
        return "".join(word.capitalize() for word in self.name.split("_"))

    def module_text(self) -> str:
        rows = [
            f"    ({settings!r}, {_described(given)}),  # {name}\n"
            for name, (_, settings, given) in self.workloads.items()
        ]
        kernel, reference = self._apart()
        imports, kernel = _imports_first("import os\n" + kernel, reference)
        parts = {"KERNEL": kernel, "VERIFIED": "".join(rows), "IMPORTS": imports}
        parts["REFERENCE"] = _imports_first(reference)[1]
        parts["DISPATCH"] = _wrapped(
            f"`{self.kind}` answers the calls in `VERIFIED` with the Triton kernel, and all "
            f"others, and those that are differentiated, with `{self.kind}Reference`."
        )
        return self._filled("op_module", parts | {"SUMMARY": self.summary})

    def test_text(self, module: str, extra: str, ending: str, *, interpreted: bool) -> str:
        allowed = self.allowed
        narrow = min(allowed, _MOST_IN_FLOAT32) if allowed and self.is_strict else allowed
        parts = {"ALLOWED": _number(allowed), "ALLOWED_IN_FLOAT32": _number(narrow)}
        parts |= {"EXTRA": extra, "ENDING": ending} | self._without_gpu(interpreted=interpreted)
        return self._filled("op_test", self._for_callers(module) | parts)

    def _without_gpu(self, *, interpreted: bool) -> dict[str, str]:
        if interpreted:
            return {
                "IMPORT_OS": "import os",
                "INTERPRETED": 'os.environ.get("TRITON_INTERPRET") == "1"',
                "WITHOUT_GPU": "Without a GPU: TRITON_INTERPRET=1, for small sizes.",
                "WHY_SKIPPED": "needs a GPU, or TRITON_INTERPRET=1",
            }
        return {
            "IMPORT_OS": "",
            "INTERPRETED": "False",
            "WITHOUT_GPU": "They need a GPU.",
            "WHY_SKIPPED": "needs a GPU",
        }

    def benchmark_text(self, module: str) -> str:
        judged = {
            name: {who: round(1e6 * value, 2) for who, value in row.items()}
            for name, row in self.seconds.items()
        }
        parts = {"JUDGED": repr(judged), "MACHINE": self.machine}
        return self._filled("op_benchmark", self._for_callers(module) | parts)

    def _for_callers(self, module: str) -> dict[str, str]:
        rows = [
            f"    {name!r}: ({sizes!r}, {settings!r}),\n"
            for name, (sizes, settings, _) in self.workloads.items()
        ]
        imports, inputs = _imports_first(self.inputs)
        own = {"import torch", "import pytest", "import triton"}
        more = "".join(f"{line}\n" for line in imports.splitlines() if line not in own)
        return {"MODULE": module, "WORKLOADS": "".join(rows), "INPUTS": inputs, "IMPORTS": more}

    def _filled(self, template: str, parts: dict[str, str]) -> str:
        text = (_TEMPLATES / f"{template}.txt").read_text("utf-8")
        for name, value in {"KIND": self.kind, "NAME": self.name, **parts}.items():
            text = text.replace(f"@{name}@", value.rstrip("\n"))
        return text

    def _apart(self) -> tuple[str, str]:
        """Both texts, with no name that means one thing in each."""
        clash = _defined(self.kernel) & _defined(self.reference)
        reference = {name: f"reference_{name}" for name in clash} | {
            "Model": f"{self.kind}Reference"
        }
        kernel = renamed(self.kernel, {"ModelNew": f"{self.kind}Kernel"})
        return kernel, renamed(self.reference, reference)


def op_of(found: Optimized, name: str) -> Op:
    """Return the operation that a run found a kernel for. Raises `BadInput` for one that cannot
    go."""
    if found.candidate.backend != "triton":
        raise BadInput(
            f"the kernel is {found.candidate.backend}, and these projects take Triton kernels",
            hint=_AS_PACKAGE,
        )
    if not name.isidentifier() or not name.islower():
        raise BadInput(
            f"{name!r} is no name of a module, expected small letters, digits and _",
            hint="name it: --name fast_norm",
        )
    task = found.task
    facts = spec_of(task, found.candidate, found.evaluation, {}).facts
    functions = [node.name for node in ast.parse(task.source).body if hasattr(node, "name")]
    makers = [one for one in ("get_inputs", "get_init_inputs") if one in functions]
    return Op(
        name=name,
        family=task.family,
        summary=_summary(task.description or f"{task.name}."),
        kernel=tidied(take_names(found.candidate.source, "ModelNew")),
        reference=take_names(task.source, "Model"),
        inputs=take_names(task.source, makers[0]),
        workloads=_workloads(found),
        allowed=facts["allowed_error"],
        is_strict=task.precision is Precision.STRICT,
        seconds=facts["seconds"],
        machine=f"{facts['device']}, torch {facts['environment']['torch']}",
    )


def _workloads(found: Optimized) -> dict[str, Any]:
    reference = execute(found.task.source, f"reference_of_{found.task.name}")
    rows = {}
    for workload in found.task.workloads:
        sizes = dict(workload.params)
        given = verified_arguments(reference.get_inputs, sizes)
        if not all(_is_plain(one) for one in given):
            raise BadInput(
                f"task {found.task.name}: forward takes nested or non-contiguous arguments",
                hint=_AS_PACKAGE,
            )
        rows[workload.name] = sizes, init_arguments(reference, sizes), given
    return rows


def _is_plain(given: Any) -> bool:
    if isinstance(given, torch.Tensor):
        return given.is_contiguous()
    return isinstance(given, int | float | bool | str | None)


def _described(given: tuple[Any, ...]) -> str:
    parts = [
        f"({tuple(one.shape)!r}, {one.dtype})" if isinstance(one, torch.Tensor) else repr(one)
        for one in given
    ]
    return "(" + "".join(f"{part}, " for part in parts).rstrip() + ")"


def _number(value: float | None) -> str:
    return "None" if value is None else f"{value:.2g}"


def _summary(text: str) -> str:
    """Return a description as the first lines of a docstring."""
    sentence, _, rest = " ".join(text.split()).replace('"""', "").partition(". ")
    lines = [sentence.rstrip(".") + ".", *([rest] if rest else [])]
    return "\n\n".join(_wrapped(line) for line in lines)


def _wrapped(text: str, width: int = 80) -> str:
    return "\n".join(re.findall(rf"\S.{{0,{width - 2}}}\S(?=\s|$)|\S+", text))


def _defined(source: str) -> set[str]:
    """Names that statements other than imports define."""
    defined: set[str] = set()
    for node in ast.parse(source).body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            defined.add(node.name)
        elif isinstance(node, ast.Assign):
            defined |= {
                each.id
                for each in ast.walk(node)
                if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
            }
    return defined


def _imports_first(*sources: str) -> tuple[str, str]:
    """Return the import lines of some texts, each once, and the rest of the first."""
    lines: dict[str, None] = {}
    rest = ""
    for number, source in enumerate(sources):
        nodes = [n for n in ast.parse(source).body if isinstance(n, ast.Import | ast.ImportFrom)]
        lines |= dict.fromkeys(ast.unparse(node) for node in nodes)
        if number == 0:
            taken = {row for n in nodes for row in range(n.lineno, (n.end_lineno or n.lineno) + 1)}
            kept = enumerate(source.splitlines(), 1)
            rest = "\n".join(line for row, line in kept if row not in taken)
    return "\n".join(sorted(lines)) + "\n", rest.strip("\n") + "\n"
