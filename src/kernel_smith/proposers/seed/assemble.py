"""Puts a seed together: kernels, one function per workload, and a `forward` that chooses."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_smith.programs.merge import workload_function
from kernel_smith.proposers.seed.cpp_text import cpp_source
from kernel_smith.proposers.seed.reference import Reference
from kernel_smith.proposers.seed.refusal import refused

_WIDTH = 100


@dataclass(frozen=True)
class Input:
    """One input of the graph: its name in the function, where `forward` finds it, type and layout.

    `strides` is None where the layout does not matter: parameters have the reference's.
    """

    name: str
    expression: str
    strides: tuple[int, ...] | None
    dtype: str
    contiguous: bool = True


@dataclass(frozen=True)
class Specialisation:
    """What one workload needs. `key` gives expressions of `forward` the values that select it."""

    workload: str
    key: dict[str, str]
    spare_key: dict[str, str]
    inputs: tuple[Input, ...]
    kernels: dict[str, str]
    body: str
    library_calls: tuple[str, ...] = ()


def assemble(
    reference: Reference, parts: Sequence[Specialisation], backend: str, title: str
) -> tuple[str, int]:
    """Return the candidate's text, and how many kernels it has."""
    kernels, bodies = _shared_kernels(parts)
    functions, called = _functions(parts, bodies)
    texts = list(kernels.values())
    blocks = [
        f'"""{title}"""',
        _imports(reference, texts, functions, backend),
        reference.before,
        _kernel_block(texts, backend),
        _relaid(parts),
        *functions,
        reference.head + textwrap.indent(_forward(reference, parts, called), "    "),
    ]
    return "\n\n\n".join(block.strip("\n") for block in blocks if block).replace(
        '"""\n\n\nimport', '"""\n\nimport', 1
    ) + "\n", len(kernels)


def _shared_kernels(parts: Sequence[Specialisation]) -> tuple[dict[str, str], list[str]]:
    """Return each different kernel once; equal names with different texts are told apart."""
    kernels: dict[str, str] = {}
    names_by_text: dict[str, str] = {}
    bodies = []
    for part in parts:
        body = part.body
        for name, text in part.kernels.items():
            anonymous = re.sub(rf"\b{name}", "KERNEL", text)
            shared = names_by_text.get(anonymous)
            if shared is None:
                shared = name if name not in kernels else f"{name}_{identifier(part.workload)}"
                names_by_text[anonymous] = shared
                kernels[shared] = anonymous.replace("KERNEL", shared)
            body = re.sub(rf"\b{name}\b", f"@{shared}@", body)
        bodies.append(body.replace("@", "") if part.kernels else body)
    return kernels, bodies


def _functions(parts: Sequence[Specialisation], bodies: list[str]) -> tuple[list[str], list[str]]:
    """Return one function per different body, and for each workload the name of its function."""
    functions: dict[str, str] = {}
    called = []
    for part, body in zip(parts, bodies, strict=True):
        parameters = ", ".join(one.name for one in part.inputs)
        text = f"({parameters}):\n{textwrap.indent(_wrapped(body), '    ')}"
        functions.setdefault(text, workload_function(part.workload))
        called.append(functions[text])
    return [f"def {name}{text}" for text, name in functions.items()], called


def _imports(reference: Reference, kernels: list[str], functions: list[str], backend: str) -> str:
    lines = dict.fromkeys(["import torch", *reference.imports.splitlines()])
    if backend == "triton":
        lines |= dict.fromkeys(["import triton", "import triton.language as tl"])
        text = "\n".join(kernels)
        if "triton_helpers." in text:
            lines["from torch._inductor.runtime import triton_helpers"] = None
        if "libdevice." in text:
            lines["from triton.language.extra import libdevice"] = None
    else:
        lines["from kernel_smith.inline import cpp"] = None
    plain = sorted(line for line in lines if line.startswith("import "))
    return "\n".join([*plain, *(line for line in lines if line not in plain)])


def _kernel_block(kernels: list[str], backend: str) -> str:
    if backend == "triton":
        return "\n\n\n".join(kernels)
    return f'SOURCE = r"""\n{cpp_source(kernels)}"""\n\nkernels = cpp(SOURCE)'


def _relaid(parts: Sequence[Specialisation]) -> str:
    if all(one.contiguous for part in parts for one in part.inputs):
        return ""
    return (
        "def relaid(x, strides):\n"
        '    """The same values, laid out as the kernels expect them."""\n'
        "    if x.stride() == strides:\n"
        "        return x\n"
        "    return torch.empty_strided(\n"
        "        x.shape, strides, dtype=x.dtype, device=x.device\n"
        "    ).copy_(x)"
    )


def _forward(reference: Reference, parts: Sequence[Specialisation], called: list[str]) -> str:
    keys = _keys(parts, called)
    expressions = list(keys[0])
    lines = [f"def forward({reference.signature}):"]
    lines.append(f"    known = {_tuple(expressions)}")
    seen: set[tuple[str, ...]] = set()
    for part, key, function in zip(parts, keys, called, strict=True):
        values = tuple(key.values())
        if values in seen:
            continue
        seen.add(values)
        arguments = ", ".join(_argument(one) for one in part.inputs)
        lines.append(f"    if known == {_tuple(values)}:")
        lines.append(textwrap.indent(_wrapped(f"return {function}({arguments})"), " " * 8))
    names = ", ".join(part.workload for part in parts)
    lines.append(f'    raise ValueError(f"made for the workloads {names}; got {{known}}")')
    return "\n".join(lines)


def _tuple(parts: Sequence[str]) -> str:
    return f"({parts[0]},)" if len(parts) == 1 else f"({', '.join(parts)})"


def _argument(one: Input) -> str:
    if one.strides is None:
        return one.expression
    if one.contiguous:
        return f"{one.expression}.contiguous()"
    return f"relaid({one.expression}, {one.strides})"


def _keys(parts: Sequence[Specialisation], called: list[str]) -> list[dict[str, str]]:
    """Return what tells the workloads apart: their inputs and, only where needed, their
    constructor."""
    keys = [dict(part.key) for part in parts]
    if any(list(key) != list(keys[0]) for key in keys):
        keys = _counted(keys)
    held = [part.spare_key for part in parts]
    common = [name for name in held[0] if all(name in one for one in held)]
    spare = [name for name in common if len({one[name] for one in held}) > 1]
    for name in spare:
        if not _ambiguous(keys, called):
            break
        for key, part in zip(keys, parts, strict=True):
            key[name] = part.spare_key[name]
    if _ambiguous(keys, called):
        raise refused(
            "two workloads have inputs of the same shapes and need different code",
            hint="make a seed for one of them: --workload NAME",
        )
    return keys


def _counted(keys: list[dict[str, str]]) -> list[dict[str, str]]:
    """By how many elements lists have, and by what is there in all workloads."""
    counts = [_counts(key) for key in keys]
    common = [name for name in keys[0] if all(name in key for key in keys)]
    if any(list(count) != list(counts[0]) for count in counts):
        raise refused("the workloads call `forward` with different numbers of arguments")
    return [
        count | {name: key[name] for name in common}
        for count, key in zip(counts, keys, strict=True)
    ]


def _counts(key: dict[str, str]) -> dict[str, str]:
    """Return the length of everything that is indexed, by its expression."""
    elements: dict[str, set[str]] = {}
    for name in key:
        for index in re.finditer(r"\[[^\]]*\]", name):
            elements.setdefault(name[: index.start()], set()).add(name[: index.end()])
    return {f"len({name})": str(len(found)) for name, found in elements.items()}


def _ambiguous(keys: list[dict[str, str]], called: list[str]) -> bool:
    chosen: dict[tuple[str, ...], str] = {}
    return any(
        chosen.setdefault(tuple(key.values()), function) != function
        for key, function in zip(keys, called, strict=True)
    )


def _wrapped(body: str) -> str:
    """Long calls with their arguments on lines of their own."""
    lines: list[str] = []
    for line in body.splitlines():
        opened = re.match(r"^(\s*)(.*?\w[\w.\]\[(), ]*?\()(.*)\)$", line)
        if len(line) <= _WIDTH - 4 or opened is None:
            lines.append(line)
            continue
        lines += _split_call(line)
    return "\n".join(lines)


def _split_call(line: str) -> list[str]:
    """Return a line that ends with a call: its last, outermost parenthesis is opened up."""
    depth = 0
    for position in range(len(line) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(line[position], 0)
        if depth == 0:
            break
    indent = line[: len(line) - len(line.lstrip())]
    inner = line[position + 1 : -1]
    filled = textwrap.wrap(inner, _WIDTH - 12, break_long_words=False, break_on_hyphens=False)
    return [line[: position + 1], *(f"{indent}    {part}" for part in filled), f"{indent})"]


def identifier(text: str) -> str:
    """Return a workload's name as part of a Python name."""
    return re.sub(r"\W", "_", text)
