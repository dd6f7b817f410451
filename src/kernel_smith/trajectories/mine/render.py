"""The text of a task file, from an extract and a plan."""

from __future__ import annotations

import pprint
import textwrap
from typing import Any

from kernel_smith.trajectories.mine.closure import Extract
from kernel_smith.trajectories.mine.guesses import CODE
from kernel_smith.trajectories.mine.plan import Input, Plan

_COLUMNS = 95
_MOST_DESCRIPTION = 600

_DRAW_CONSTANTS = """\
for parameter in self.parameters():
    # Constant ones, such as the weights of norms, would hide what is done with them.
    if parameter.numel() > 1 and parameter.min() == parameter.max():
        parameter.data += 0.2 * torch.randn_like(parameter)
"""


def task_text(extract: Extract, plan: Plan, family: str, origin: str) -> str:
    """A file in the project's task format; `origin` says where the class was found."""
    task: dict[str, Any] = {"family": family, "workloads": plan.workloads}
    imports = {*extract.imports}
    if plan.config is not None:
        imports.add("from types import SimpleNamespace")
    parts = [
        f'"""{_description(extract, origin)}"""\n\n' + "\n".join(sorted(imports)),
        f"TASK = {pprint.pformat(task, width=_COLUMNS, sort_dicts=False)}",
        extract.body,
        _model(extract.class_name, plan),
        _get_inputs(plan),
    ]
    if plan.init:
        values = ", ".join(repr(value) for value in plan.init.values())
        parts.append(f"def get_init_inputs():\n    return [{values}]")
    return "\n\n\n".join(parts) + "\n"


def _description(extract: Extract, origin: str) -> str:
    paragraph = " ".join(extract.docstring.split("\n\n")[0].split())[:_MOST_DESCRIPTION]
    text = f"`{extract.class_name}` of {origin}. {paragraph}".strip()
    plain = text.replace("\\", "/").replace('"', "'")
    printable = "".join(c for c in plain if c.isprintable())
    return textwrap.fill(printable, _COLUMNS)


def _model(class_name: str, plan: Plan) -> str:
    arguments = [f"{name}={name}" for name in plan.init]
    arguments += [f"{name}={CODE[key]}" for name, key in plan.code.items()]
    lines = []
    if plan.config is not None:
        fields = "".join(f"    {name}={value!r},\n" for name, value in plan.config.items())
        lines.append(f"config = SimpleNamespace(\n{fields})\n" if fields else "config = None\n")
        arguments.append("config=config")
    lines.append(f"super().__init__({', '.join(arguments)})\n")
    lines += [
        f"torch.nn.init.normal_(self.get_parameter({name!r}), std=0.1)\n" for name in plan.unset
    ]
    if plan.constant:
        lines.append(_DRAW_CONSTANTS)
    lines.append("self.eval()\n")
    body = textwrap.indent("".join(lines), " " * 8)
    parameters = "".join(f", {name}" for name in plan.init)
    return f"class Model({class_name}):\n    def __init__(self{parameters}):\n{body}".rstrip()


def _get_inputs(plan: Plan) -> str:
    symbols = dict.fromkeys(
        part for given in plan.inputs for part in given.shape if isinstance(part, str)
    )
    sizes = next(iter(plan.workloads.values()), {})
    parameters = ", ".join(
        f"{name}={sizes[name]}" if name in sizes else str(name) for name in symbols
    )
    inputs = ", ".join(map(_input, plan.inputs))
    return f"def get_inputs({parameters}):\n    return [{inputs}]"


def _input(given: Input) -> str:
    shape = ", ".join(map(str, given.shape))
    match given.kind:
        case "none":
            return "None"
        case "float":
            return f"torch.randn({shape})"
        case "unit":
            return f"torch.rand({shape})"
        case "index":
            return f"torch.randint(0, {given.high}, ({shape},))"
        case "mask":
            return f"torch.rand({shape}) < 0.8"
        case "pair":
            return f"(torch.randn({shape}), torch.randn({shape}))"
        case "size":
            return shape if len(given.shape) == 1 else f"({shape})"
