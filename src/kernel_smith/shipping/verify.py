"""A task whose reference is another project's own function: before is theirs, after is ours.

The judge then holds a kernel against what the project runs today. Where inputs are floating point
numbers, the task's own formula in double precision is still what tells right from wrong.
"""

from __future__ import annotations

import ast
import symtable
import textwrap
from pathlib import Path

from kernel_smith.errors import BadInput
from kernel_smith.records import Evaluation, Interval, Task
from kernel_smith.shipping.theirs import take_function

_WRAPPED = """\
{source}


# From here on: what {origin} needs, and a reference that calls it.

{theirs}

Written = Model


class Model(Written):
    def forward(self, {arguments}):
{exactly}{body}
"""
_EXACTLY = """\
        given = ({names},)
        if any(isinstance(x, torch.Tensor) and x.dtype is torch.float64 for x in given):
            return super().forward({names})
"""


def task_against(
    task: Task, checkout: Path, root: str, function: str, call: str | None, *, exact: bool = True
) -> Task:
    """Return the task with a function of a checkout, FILE:FUNCTION, as its reference.

    `root` is the folder of the checkout that the project's imports start from.
    """
    file, _, name = function.rpartition(":")
    if not file or not name.isidentifier():
        raise BadInput(
            f"{function!r} names no function, expected FILE:FUNCTION",
            hint="--function lmdeploy/pytorch/kernels/cuda/rms_norm.py:rms_norm",
        )
    start = checkout / root
    places = [checkout / file, start / file]
    path = next((each for each in places if each.is_file()), places[0])
    theirs = take_function(start.resolve(), path.resolve(), name)
    if call is None:
        arguments = ", ".join(argument.arg for argument in _forward(task).args.args[1:])
        call = f"{name}({arguments})"
    return held_against(task, theirs.text, call, function, exact=exact)


def comparison(evaluation: Evaluation, function: str) -> list[str]:
    """Return what a judge found, as lines: before is theirs, after is ours."""
    if not evaluation.ok:
        return [f"refused: {evaluation.reason}: {evaluation.message}"]
    if evaluation.timing is None:
        return [f"right, as {function} is; nothing was timed"]
    lines = ["| workload | before | after | speedup (95%) |", "|---|---|---|---|"]
    for timed in evaluation.timing.workloads:
        theirs = timed.baselines[0]
        lines.append(
            f"| {timed.workload} | {1e6 * theirs.seconds.p50:.2f} us "
            f"| {1e6 * timed.candidate.p50:.2f} us | {_ratio(theirs.speedup)} |"
        )
    whole = evaluation.timing.speedup
    where = evaluation.device.name if evaluation.device else evaluation.environment.processor
    return [*lines, f"{_ratio(whole)} of {function}, on {where}"]


def _ratio(speedup: Interval) -> str:
    return f"{speedup.value:.2f}x ({speedup.low:.2f} to {speedup.high:.2f})"


def held_against(task: Task, theirs: str, call: str, origin: str, *, exact: bool = True) -> Task:
    """Return the task with a reference that calls a function of another project. Raises `BadInput`.

    `theirs` defines the function. `call` is an expression of the arguments of `forward` and of
    `self`, or statements that end with `return`. `exact`: is the task's formula in double precision
    right, or the function's own results?
    """
    _check_names(task, theirs)
    forward = _forward(task)
    names = ", ".join(argument.arg for argument in forward.args.args[1:])
    source = _WRAPPED.format(
        source=task.source.rstrip(),
        origin=origin,
        theirs=theirs,
        arguments=names,
        exactly=_EXACTLY.format(names=names) if exact else "",
        body=textwrap.indent(_statements(call), " " * 8),
    )
    return task.model_copy(update={"source": source, "path": None, "name": f"{task.name}_theirs"})


def _statements(call: str) -> str:
    """Return the call as statements that return its result."""
    text = textwrap.dedent(call).strip()
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError:
        pass
    else:
        return f"return {ast.unparse(tree)}"
    try:
        ast.parse(f"def call():\n{textwrap.indent(text, '    ')}")
    except SyntaxError as error:
        raise BadInput(
            f"the call {text!r} is no Python: {error.msg}",
            hint="write an expression, such as: --call 'theirs(x, self.weight, 1e-6)'",
        ) from None
    return text


def _forward(task: Task) -> ast.FunctionDef:
    """Return the reference's `forward`, whose arguments the call is made of."""
    classes = [node for node in ast.parse(task.source).body if isinstance(node, ast.ClassDef)]
    body = [statement for node in classes if node.name == "Model" for statement in node.body]
    for method in body:
        if not isinstance(method, ast.FunctionDef):
            continue
        if method.name == "forward" and len(method.args.args) > 1:
            return method
    raise BadInput(
        f"task {task.name}: class Model has no forward with named arguments",
        hint="name the arguments of forward in the task file",
    )


def _check_names(task: Task, theirs: str) -> None:
    ours, others = _names(task.source), _names(theirs)
    clash = sorted((ours[0] & others[0]) | (ours[0] & others[1]) | (ours[1] & others[0]))
    if clash:
        raise BadInput(
            f"`{clash[0]}` is a name of task {task.name} and of the project's code",
            hint="rename it in the task file",
        )


def _names(source: str) -> tuple[set[str], set[str]]:
    """Return what a text defines, and what it imports."""
    symbols = symtable.symtable(source, "task", "exec").get_symbols()
    imported = {symbol.get_name() for symbol in symbols if symbol.is_imported()}
    return {s.get_name() for s in symbols if s.is_assigned()} - imported, imported
