"""Reading a task file into a `Task`, on its syntax tree: nothing in it runs, torch stays unloaded.

The format is described in docs/task-format.md. Every refusal names the file, the line, what was
found and what was expected, and its hint is the remedy.
"""

from __future__ import annotations

import ast
from pathlib import Path

from kernel_smith.records import Task, Workload
from kernel_smith.tasks.literals import check_text
from kernel_smith.tasks.settings import LocatedWorkload, read_settings
from kernel_smith.tasks.signature import Signature, signature_of
from kernel_smith.tasks.syntax import TaskFile, did_you_mean, listed, load


def read_task(path: Path) -> Task:
    """Return the task that a file defines. Raises `BadInput` if it does not define one."""
    file = load(path)
    _check_model(file)
    settings = read_settings(file)
    settings["workloads"] = _checked_workloads(file, settings.get("workloads"))
    defaults = {
        "name": _default_name(path),
        "description": _docstring(file),
        "starts": _default_starts(path),
    }
    return Task(source=file.source, path=str(path.resolve()), **(defaults | settings))


def _default_name(path: Path) -> str:
    folder = path.resolve().parent.name
    return folder if path.name == "task.py" and folder else path.stem


def _docstring(file: TaskFile) -> str:
    text = ast.get_docstring(file.tree) or ""
    check_text(file, 1, text)
    return text


def _default_starts(path: Path) -> dict[str, str]:
    if path.name != "task.py":
        return {}
    found = sorted(path.resolve().parent.glob("start_*.py"))
    return {start.stem.removeprefix("start_"): str(start) for start in found}


def _check_model(file: TaskFile) -> None:
    classes = file.classes()
    model = classes.get("Model")
    if model is None:
        raise file.error(
            1, "no `class Model`, expected the reference under that name", _model_hint(classes)
        )
    if not _has_forward(model, classes):
        raise file.error(
            model.lineno,
            "`class Model` has no `forward`, expected a method that computes the reference",
            "define `def forward(self, ...)` in it, taking what `get_inputs` returns",
        )


def _model_hint(classes: dict[str, ast.ClassDef]) -> str:
    if "ModelNew" in classes:
        return (
            f"`class ModelNew` on line {classes['ModelNew'].lineno} is what a candidate defines; "
            "a task calls its reference `Model`"
        )
    # Either the name is close, or it is the last module defined, which KernelBench calls Model.
    similar = [name for name in classes if "model" in name.lower()]
    modules = [name for name, node in classes.items() if any(map(_is_plain_module, node.bases))]
    for name in (similar or modules)[-1:]:
        return f"rename `class {name}` on line {classes[name].lineno} to `Model`"
    return "define `class Model(torch.nn.Module)` with a `forward` at module level"


def _has_forward(model: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    """Tell whether the class, or a class it derives from, brings `forward`, as far as can be
    seen."""
    pending, seen = [model], {model.name}
    while pending:
        node = pending.pop()
        if any(_defines_forward(statement) for statement in node.body):
            return True
        for base in node.bases:
            name = base.id if isinstance(base, ast.Name) else None
            if name in classes and name is not None:
                if name not in seen:
                    seen.add(name)
                    pending.append(classes[name])
            elif not _is_plain_module(base):
                # A class from elsewhere: the file alone cannot tell, so the judge will.
                return True
    return False


def _defines_forward(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.FunctionDef):
        return statement.name == "forward"
    if isinstance(statement, ast.Assign):
        return any(
            isinstance(target, ast.Name) and target.id == "forward" for target in statement.targets
        )
    return False


def _is_plain_module(base: ast.expr) -> bool:
    name = base.attr if isinstance(base, ast.Attribute) else getattr(base, "id", "")
    return name in ("Module", "object")


def _checked_workloads(
    file: TaskFile, given: tuple[LocatedWorkload, ...] | None
) -> tuple[Workload, ...]:
    """Return the workloads, each checked against what `get_inputs` and `get_init_inputs` take."""
    functions = file.functions()
    get_inputs = functions.get("get_inputs")
    if get_inputs is None:
        suggestion = did_you_mean("get_inputs", set(functions) - {"get_init_inputs"})
        raise file.error(
            1,
            "no function `get_inputs`, expected one that returns the arguments of `forward`",
            suggestion or "define `def get_inputs()` at module level, returning a list",
        )
    default = LocatedWorkload(Workload(name="default"), get_inputs.lineno, {})
    workloads = given or (default,)
    for workload in workloads:
        _check_accepted(file, workload, signature_of(get_inputs))
    for function in (get_inputs, functions.get("get_init_inputs")):
        if function is not None:
            for workload in workloads:
                _check_complete(file, workload, function, is_default=given is None)
    return tuple(located.workload for located in workloads)


def _check_accepted(file: TaskFile, located: LocatedWorkload, signature: Signature) -> None:
    workload = located.workload
    for keyword in workload.params:
        if not signature.accepts(keyword):
            accepted = listed(signature.keywords) or "no keyword"
            raise file.error(
                located.lines[keyword],
                f"workload `{workload.name}` gives `{keyword}`, "
                f"expected what `get_inputs` accepts: {accepted}",
                did_you_mean(
                    keyword,
                    signature.keywords,
                    otherwise=f"add `{keyword}` to the parameters of `get_inputs`, or remove it",
                ),
            )


def _check_complete(
    file: TaskFile, located: LocatedWorkload, function: ast.FunctionDef, *, is_default: bool
) -> None:
    signature = signature_of(function)
    if signature.by_position_only:
        raise file.error(
            function.lineno,
            f"`{function.name}` takes {listed(signature.by_position_only)} by position only, "
            "expected keywords",
            "remove the `/` from its parameters",
        )
    workload = located.workload
    missing = [name for name in signature.required if name not in workload.params]
    if not missing:
        return
    if "weight" in missing:
        raise file.error(
            function.lineno,
            f"`{function.name}` requires `weight`, expected another name: "
            "in a workload it is the workload's weight",
            "rename the parameter",
        )
    given_by = "no workload is defined" if is_default else f"workload `{workload.name}` is silent"
    raise file.error(
        located.line,
        f"`{function.name}` requires {listed(missing)} but {given_by}, "
        "expected a value for every parameter without a default",
        _completing_hint(workload, missing, is_default=is_default),
    )


def _completing_hint(workload: Workload, missing: list[str], *, is_default: bool) -> str:
    values = ", ".join(f'"{name}": ...' for name in missing)
    if is_default:
        return f'give it a default, or add "workloads": {{"default": {{{values}}}}} to TASK'
    return f'add {values} to the workload "{workload.name}", or give the parameter a default'
