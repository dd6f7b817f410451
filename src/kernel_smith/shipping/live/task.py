"""The task of a live module: written down, read back, and compared with the module."""

from __future__ import annotations

import ast
import inspect
import pprint
import re
import tempfile
import textwrap
from pathlib import Path
from typing import Any

import torch
from torch.nn.utils import parametrize

from kernel_smith.errors import BadInput
from kernel_smith.records import Task
from kernel_smith.shipping.live.examples import Call, inputs_like
from kernel_smith.shipping.live.sources import Sources, public_name, refused
from kernel_smith.shipping.live.state import Rebuilding
from kernel_smith.shipping.runtime.dropin import DropIn
from kernel_smith.shipping.runtime.spec import execute
from kernel_smith.shipping.runtime.state import tensors_of
from kernel_smith.tasks import read_task

_COLUMNS = 95


def live_task(module: torch.nn.Module, calls: list[Call], name: str | None = None) -> Task:
    """Return a task whose reference computes what the module does. Raises `BadInput` if none can be
    made.

    The text is executed, and its results on the example calls are compared with the module's.
    """
    if any(isinstance(part, DropIn) for part in module.modules()):
        raise BadInput(
            "a kernel answers calls of this module, or of a part of it, already",
            hint="take it back with unpatch, or optimize the module that it was made of",
        )
    _demand_plain_weights(module)
    sources = Sources(dict.fromkeys(map(type, module.modules())))
    model = _model_node(module, sources)
    sources.main_text = ast.unparse(model)
    rebuilding = Rebuilding(sources)
    rebuilding.rebuild(module)
    if not module.training:
        rebuilding.lines.append("self.eval()")
    constructor = ast.parse(
        "def __init__(self):\n" + textwrap.indent("\n".join(rebuilding.lines), "    ")
    ).body[0]
    model.body.insert(0, constructor)
    inputs = inputs_like(calls)
    title = f"`{type(module).__qualname__}` of {type(module).__module__}."
    facts = {"family": "live", "workloads": inputs.workloads}
    blocks = [
        f'"""{title}"""\n\n' + "\n".join(sorted(sources.imports)),
        f"TASK = {pprint.pformat(facts, width=_COLUMNS, sort_dicts=False)}",
        *sources.statements,
        ast.unparse(ast.fix_missing_locations(model)),
        *dict.fromkeys(sources.after),
        inputs.text,
    ]
    text = "\n\n\n".join(blocks) + "\n"
    task = _read(text, name or type(module).__name__.lower())
    _compare(module, text, calls, rebuilding.left_out)
    return task


def _demand_plain_weights(module: torch.nn.Module) -> None:
    for path, part in module.named_modules():
        if parametrize.is_parametrized(part):
            raise BadInput(
                f"{path or 'the module'} computes its weights, by weight_norm or its kin",
                hint="torch.nn.utils.parametrize.remove_parametrizations gives it plain ones",
            )


def _model_node(module: torch.nn.Module, sources: Sources) -> ast.ClassDef:
    kind = type(module)
    if public_name(kind) is None:
        node = sources.class_text(kind, renamed="Model")
    else:
        node = ast.ClassDef(
            "Model", [ast.parse(str(public_name(kind)), mode="eval").body], [], [], []
        )
    if not any(getattr(statement, "name", None) == "forward" for statement in node.body):
        node.body.append(_inherited_forward(module))
    node.body = [statement for statement in node.body if not isinstance(statement, ast.Pass)]
    return node


def _inherited_forward(module: torch.nn.Module) -> ast.stmt:
    parameters = inspect.signature(module.forward).parameters.values()
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in parameters]
    listed = str(inspect.Signature(plain))[1:-1]
    passed = ", ".join(
        f"*{p.name}" if p.kind is p.VAR_POSITIONAL else p.name
        for p in plain
        if p.kind is not p.VAR_KEYWORD
    )
    text = f"def forward(self, {listed}):\n    return super().forward({passed})"
    return ast.parse(text).body[0]


def _read(text: str, name: str) -> Task:
    with tempfile.TemporaryDirectory(prefix="kernel-smith-") as folder:
        path = Path(folder) / f"{name}.py"
        path.write_text(text, "utf-8")
        return read_task(path).model_copy(update={"path": None})


def _compare(
    module: torch.nn.Module, text: str, calls: list[Call], left_out: dict[str, str]
) -> None:
    device = next((tensor.device for _, tensor in tensors_of(module)), torch.device("cpu"))
    try:
        with torch.random.fork_rng(devices=[]):
            rebuilt = execute(text, "live_task").Model().to(device)
    except Exception as error:
        raise refused(f"the module cannot be built anew: {error}") from error
    rebuilt.load_state_dict(module.state_dict())
    if [part.training for part in rebuilt.modules()] != [p.training for p in module.modules()]:
        raise BadInput(
            "some parts of the module train and others do not",
            hint="call .eval() or .train() on all of it",
        )
    for call in calls:
        with torch.no_grad(), torch.random.fork_rng(devices=[]):
            expected = _expected(module, _copied(call.arguments))
            found = _called(rebuilt, _copied(call.arguments), left_out)
        _require_same(found, expected)
        if not _is_written(expected):
            raise refused("the module returns something else than tensors, numbers and their kin")


def _expected(module: torch.nn.Module, arguments: tuple[Any, ...]) -> Any:
    try:
        return module.forward(*arguments)
    except Exception as error:
        raise BadInput(
            f"the module fails on example_inputs: {error}", hint="pass what it can be called with"
        ) from error


def _called(rebuilt: Any, arguments: tuple[Any, ...], left_out: dict[str, str]) -> Any:
    try:
        return rebuilt(*arguments)
    except Exception as error:
        missing = re.search(r"has no attribute '(\w+)'", str(error))
        if missing is not None and missing[1] in left_out:
            kind = left_out[missing[1]]
            raise refused(
                f"forward reads `{missing[1]}`, a {kind}, which cannot be written down"
            ) from error
        raise refused(f"the module's source does not run by itself: {error}") from error


def _copied(value: Any) -> Any:
    if isinstance(value, torch.Tensor):
        return value.detach().clone(memory_format=torch.preserve_format)
    if isinstance(value, tuple | list):
        return type(value)(_copied(item) for item in value)
    if isinstance(value, dict):
        return {key: _copied(item) for key, item in value.items()}
    return value


def _require_same(found: Any, expected: Any) -> None:
    try:
        torch.testing.assert_close(found, expected, equal_nan=True)
    except (AssertionError, TypeError, ValueError) as error:
        raise BadInput(
            "the module, built anew from its source and settings, gives other results: "
            + str(error).strip().splitlines()[0],
            hint="call .eval() if it draws at random while it trains; otherwise write a task file "
            "(docs/task-format.md)",
        ) from error


def _is_written(value: Any) -> bool:
    if isinstance(value, tuple | list):
        return all(map(_is_written, value))
    if isinstance(value, dict):
        return all(map(_is_written, value.values()))
    return isinstance(value, torch.Tensor | int | float | type(None))
