"""The reference's class as `ModelNew`: its constructor and what that needs, with a new `forward`.

Keeping the author's own text keeps the constructor's arguments, the order of its random draws, and
the names of parameters and buffers.
"""

from __future__ import annotations

import ast
import textwrap
from dataclasses import dataclass

from kernel_smith.proposers.seed.refusal import refused

_NOT_NEEDED = {"TASK", "get_inputs", "get_init_inputs"}


@dataclass(frozen=True)
class Reference:
    """`before` is what the class needs; `parameters` are those of `forward`, without `self`."""

    imports: str
    before: str
    head: str
    signature: str
    parameters: tuple[str, ...]
    variadic: str | None


def read_reference(source: str) -> Reference:
    """Take a task file apart. It is read, not executed."""
    tree = ast.parse(source)
    model = _model_class(tree)
    forward = _method(model, "forward")
    if forward is None:
        raise refused(
            "`class Model` has no `forward` of its own",
            hint="write it in the task, as in `def forward(self, x): return super().forward(x)`",
        )
    kept = _kept_methods(model)
    others = [statement for statement in tree.body if statement is not model]
    needed = _needed(others, [*kept, *model.bases, *model.decorator_list, forward.args])
    imports: list[ast.stmt] = [s for s in needed if isinstance(s, ast.Import | ast.ImportFrom)]
    before = [s for s in needed if s not in imports]
    arguments = forward.args
    for first in [*arguments.posonlyargs, *arguments.args][:1]:
        first.arg = "self"  # as what is generated calls it
    return Reference(
        imports=_texts(source, imports, "\n"),
        before=_texts(source, before, "\n\n\n"),
        head=_head(source, model, kept),
        signature=ast.unparse(arguments),
        parameters=tuple(a.arg for a in (*arguments.posonlyargs, *arguments.args)[1:]),
        variadic=arguments.vararg.arg if arguments.vararg else None,
    )


def _model_class(tree: ast.Module) -> ast.ClassDef:
    for statement in tree.body:
        if isinstance(statement, ast.ClassDef) and statement.name == "Model":
            return statement
    raise refused("the task's `Model` is not a `class` statement at module level")


def _method(model: ast.ClassDef, name: str) -> ast.FunctionDef | None:
    for statement in model.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == name:
            return statement
    return None


def _kept_methods(model: ast.ClassDef) -> list[ast.stmt]:
    """Return the class's statements but `forward` and the methods that only it can have called."""
    others = [s for s in model.body if getattr(s, "name", None) != "forward"]
    if others and isinstance(others[0], ast.Expr) and isinstance(others[0].value, ast.Constant):
        del others[0]  # the docstring tells of the reference
    methods = {s.name: s for s in others if isinstance(s, ast.FunctionDef)}
    kept = [s for s in others if not (isinstance(s, ast.FunctionDef) and s.name[:2] != "__")]
    pending = list(kept)
    while pending:
        for node in ast.walk(pending.pop()):
            name = node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", None)
            method = methods.get(str(name))
            if method is not None and method not in kept:
                kept.append(method)
                pending.append(method)
    return [statement for statement in others if statement in kept]


def _needed(statements: list[ast.stmt], roots: list[ast.AST]) -> list[ast.stmt]:
    """Return the statements of a module that define what `roots` use, in their order."""
    wanted = _names_read(roots)
    kept: set[ast.stmt] = set()
    grown = True
    while grown:
        grown = False
        for statement in statements:
            if statement not in kept and _names_made(statement) & wanted:
                kept.add(statement)
                wanted |= _names_read([statement])
                grown = True
    return [statement for statement in statements if statement in kept]


def _names_read(roots: list[ast.AST]) -> set[str]:
    return {node.id for root in roots for node in ast.walk(root) if isinstance(node, ast.Name)}


def _names_made(statement: ast.stmt) -> set[str]:
    match statement:
        case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
            made = {alias.asname or alias.name.partition(".")[0] for alias in aliases}
            return made if getattr(statement, "module", "") != "__future__" else set()
        case ast.FunctionDef(name=name) | ast.ClassDef(name=name):
            return {name} - _NOT_NEEDED
    stored = (node for node in ast.walk(statement) if isinstance(node, ast.Name))
    return {node.id for node in stored if isinstance(node.ctx, ast.Store)} - _NOT_NEEDED


def _texts(source: str, statements: list[ast.stmt], between: str) -> str:
    return between.join(_text(source, statement) for statement in statements)


def _text(source: str, statement: ast.stmt) -> str:
    decorators = getattr(statement, "decorator_list", [])
    first = min([statement.lineno, *(decorator.lineno for decorator in decorators)])
    lines = source.splitlines()[first - 1 : statement.end_lineno]
    return textwrap.dedent("\n".join(lines))


def _head(source: str, model: ast.ClassDef, kept: list[ast.stmt]) -> str:
    """Return the class up to `forward`; `super(Model, self)` must name the new class."""
    bases = ", ".join(ast.unparse(base) for base in model.bases)
    parts = []
    for statement in kept:
        names = {node.id for node in ast.walk(statement) if isinstance(node, ast.Name)}
        if "Model" in names:
            parts.append(ast.unparse(_Renamed().visit(statement)))
        else:
            parts.append(_text(source, statement))
    body = textwrap.indent("\n\n".join(parts), "    ")
    return f"class ModelNew({bases}):\n{body}\n\n" if body else f"class ModelNew({bases}):\n"


class _Renamed(ast.NodeTransformer):
    def visit_Name(self, node: ast.Name) -> ast.Name:
        return ast.Name("ModelNew" if node.id == "Model" else node.id, node.ctx)
