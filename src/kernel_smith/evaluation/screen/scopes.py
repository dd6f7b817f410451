"""What each name of a file stands for: which import, through which aliases, in which scope.

A name has an *origin*, such as `torch.nn.functional.relu`, only if everything bound to it in its
scope leads to an import or to a builtin. A name that is also bound to something else has none, so
that rules built on origins stay silent where the tree alone cannot tell.
"""

from __future__ import annotations

import ast
import builtins
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

# An import's dotted name, the expression that a name was set to, or None for anything else.
Binding: TypeAlias = str | ast.expr | None

_LONGEST_ALIAS_CHAIN = 20

_Function: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
_Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


@dataclass(eq=False)
class Scope:
    parent: Scope | None
    kind: Literal["module", "function", "class", "comprehension"]
    bindings: dict[str, list[Binding]] = field(default_factory=dict)
    global_names: set[str] = field(default_factory=set)
    nonlocal_names: set[str] = field(default_factory=set)

    def bind(self, name: str, binding: Binding) -> None:
        self.bindings.setdefault(name, []).append(binding)

    def enclosing_function(self) -> Scope:
        """Where `:=` inside a comprehension binds."""
        scope = self
        while scope.kind == "comprehension" and scope.parent is not None:
            scope = scope.parent
        return scope


class ScopeBuilder:
    """Walks a tree once, without recursion, and records every binding in its scope."""

    def __init__(self, tree: ast.Module) -> None:
        self.module = Scope(None, "module")
        self.scope_of: dict[ast.Name, Scope] = {}
        self._scopes = [self.module]
        self._bound_as_alias: set[ast.Name] = set()
        self._pending: list[tuple[ast.AST, Scope]] = []
        self._push(tree.body, self.module)
        while self._pending:
            self._visit(*self._pending.pop())
        for scope in self._scopes:
            self._move_declared(scope)

    def _push(self, nodes: object, scope: Scope) -> None:
        if isinstance(nodes, ast.AST):
            self._pending.append((nodes, scope))
        elif isinstance(nodes, list):
            for node in nodes:
                self._push(node, scope)

    def _inner(self, parent: Scope, kind: Literal["function", "class", "comprehension"]) -> Scope:
        scope = Scope(parent, kind)
        self._scopes.append(scope)
        return scope

    def _visit(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.Lambda():
                self._visit_function(node, scope)
            case ast.ClassDef():
                self._visit_class(node, scope)
            case ast.ListComp() | ast.SetComp() | ast.DictComp() | ast.GeneratorExp():
                self._visit_comprehension(node, scope)
            case ast.Name():
                self.scope_of[node] = scope
                if isinstance(node.ctx, ast.Store) and node not in self._bound_as_alias:
                    scope.bind(node.id, None)
            case _:
                self._record(node, scope)
                self._push(list(ast.iter_child_nodes(node)), scope)

    def _record(self, node: ast.AST, scope: Scope) -> None:
        match node:
            case ast.Import():
                for alias in node.names:
                    whole = alias.name if alias.asname else alias.name.partition(".")[0]
                    scope.bind(alias.asname or whole, whole)
            case ast.ImportFrom(level=0, module=str(module)):
                for alias in node.names:
                    scope.bind(alias.asname or alias.name, f"{module}.{alias.name}")
            case ast.ImportFrom():
                for alias in node.names:
                    scope.bind(alias.asname or alias.name, None)
            case ast.Assign():
                for target in node.targets:
                    self._bind_alias(target, node.value, scope)
            case ast.AnnAssign(value=ast.expr() as value):
                self._bind_alias(node.target, value, scope)
            case ast.NamedExpr():
                self._bind_alias(node.target, node.value, scope.enclosing_function())
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)):
                scope.bind(name, None)
            case ast.MatchStar(name=str(name)) | ast.MatchMapping(rest=str(name)):
                scope.bind(name, None)
            case ast.Global():
                scope.global_names.update(node.names)
            case ast.Nonlocal():
                scope.nonlocal_names.update(node.names)

    def _bind_alias(self, target: ast.expr, value: ast.expr, scope: Scope) -> None:
        if isinstance(target, ast.Name):
            scope.bind(target.id, value)
            self._bound_as_alias.add(target)
        elif (
            isinstance(target, (ast.Tuple, ast.List))
            and isinstance(value, (ast.Tuple, ast.List))
            and len(target.elts) == len(value.elts)
            and not any(isinstance(part, ast.Starred) for part in (*target.elts, *value.elts))
        ):
            for part, part_value in zip(target.elts, value.elts, strict=True):
                self._bind_alias(part, part_value, scope)

    def _visit_function(self, node: _Function, scope: Scope) -> None:
        inner = self._inner(scope, "function")
        args = node.args
        for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs, args.vararg, args.kwarg):
            if arg is not None:
                inner.bind(arg.arg, None)
        # Defaults, annotations and decorators are evaluated outside the function.
        self._push(args, scope)
        if not isinstance(node, ast.Lambda):
            scope.bind(node.name, None)
            self._push([*node.decorator_list, node.returns], scope)
        self._push(_type_parameters(node), inner)
        self._push(node.body, inner)

    def _visit_class(self, node: ast.ClassDef, scope: Scope) -> None:
        scope.bind(node.name, None)
        self._push([*node.decorator_list, *node.bases, *node.keywords], scope)
        inner = self._inner(scope, "class")
        self._push(_type_parameters(node), inner)
        self._push(node.body, inner)

    def _visit_comprehension(self, node: _Comprehension, scope: Scope) -> None:
        inner = self._inner(scope, "comprehension")
        self._push(list(ast.iter_child_nodes(node)), inner)

    def _move_declared(self, scope: Scope) -> None:
        """Give what `global` and `nonlocal` declare to the scope that it belongs to."""
        for name in scope.global_names & scope.bindings.keys():
            for binding in scope.bindings.pop(name):
                self.module.bind(name, binding)
        for name in scope.nonlocal_names & scope.bindings.keys():
            owner = scope.parent
            while owner is not None and (owner.kind == "class" or name not in owner.bindings):
                owner = owner.parent
            if owner is not None:
                owner.bindings[name].extend(scope.bindings.pop(name))


class Names:
    """Answers what an expression stands for."""

    def __init__(self, tree: ast.Module) -> None:
        builder = ScopeBuilder(tree)
        self.module = builder.module
        self._scope_of = builder.scope_of
        self._known: dict[tuple[Scope, str], str | None] = {}

    def origin(self, node: ast.expr, depth: int = 0) -> str | None:
        """The dotted name that an expression is sure to stand for, if there is one."""
        if depth > _LONGEST_ALIAS_CHAIN:
            return None
        attributes: list[str] = []
        while True:
            match node:
                case ast.Attribute():
                    attributes.append(node.attr)
                    node = node.value
                case ast.NamedExpr():
                    node = node.value
                case _:
                    break
        base = self._base_origin(node, depth)
        return None if base is None else ".".join([base, *reversed(attributes)])

    def _base_origin(self, node: ast.expr, depth: int) -> str | None:
        match node:
            case ast.Name():
                return self._name_origin(node, depth)
            case ast.Call(func=function, args=[owner, ast.Constant(value=str(name)), *_]):
                if self.origin(function, depth + 1) == "builtins.getattr":
                    return _joined(self.origin(owner, depth + 1), name)
            case ast.Call(func=function, args=[owner], keywords=[]):
                if self.origin(function, depth + 1) == "builtins.vars":
                    return _joined(self.origin(owner, depth + 1), "__dict__")
            case ast.Subscript(value=container, slice=ast.Constant(value=str(key))):
                holder = self.origin(container, depth + 1)
                if holder == "sys.modules":
                    return key
                if holder is not None and holder.endswith(".__dict__"):
                    return _joined(holder.removesuffix(".__dict__"), key)
        return None

    def _name_origin(self, node: ast.Name, depth: int) -> str | None:
        scope = self._holder(node)
        if scope is None:
            return f"builtins.{node.id}" if hasattr(builtins, node.id) else None
        key = (scope, node.id)
        if key not in self._known:
            self._known[key] = None  # ends the search in a circle of aliases
            self._known[key] = self._common_origin(scope, node.id, depth)
        return self._known[key]

    def _common_origin(self, scope: Scope, name: str, depth: int) -> str | None:
        origins: list[str] = []
        for binding in scope.bindings[name]:
            match binding:
                case str():
                    origins.append(binding)
                case ast.Constant(value=None):
                    continue  # `x = None` beside an import is a placeholder
                case ast.Name(id=same) if same == name and self._holder(binding) is scope:
                    continue  # `torch = torch`
                case ast.expr() if (found := self.origin(binding, depth + 1)) is not None:
                    origins.append(found)
                case _:
                    return None
        return origins[0] if origins else None

    def _holder(self, node: ast.Name) -> Scope | None:
        """The scope whose binding a name refers to; None for builtins and unknown names."""
        first = self._scope_of[node]
        scope: Scope | None = first
        while scope is not None:
            if node.id in scope.global_names:
                scope = self.module
            # A class body is not visible from the functions inside it.
            if node.id in scope.bindings and (scope is first or scope.kind != "class"):
                return scope
            scope = scope.parent
        return None


def _type_parameters(node: ast.AST) -> list[ast.AST]:
    """The `T` of `def f[T]()`, which Python has from 3.12 on."""
    return getattr(node, "type_params", [])


def _joined(owner: str | None, name: str) -> str | None:
    return None if owner is None else f"{owner}.{name}"
