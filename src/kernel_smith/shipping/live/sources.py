"""The source of a class and of all that it needs, from the objects of a running program.

Constructors are left out: instances are rebuilt from what they hold (`state.py`), and arguments
that a constructor once got are known to nobody any more.
"""

from __future__ import annotations

import ast
import builtins
import contextlib
import enum
import functools
import inspect
import linecache
import math
import sys
import textwrap
import types
from collections.abc import Iterable, Iterator
from typing import Any

import torch

from kernel_smith.errors import BadInput
from kernel_smith.trajectories.mine.cleaning import cleaned
from kernel_smith.trajectories.mine.closure import ALLOWED_MODULES
from kernel_smith.trajectories.mine.names import global_names
from kernel_smith.trajectories.mine.stand_ins import STAND_INS

RESERVED = frozenset({"Model", "ModelNew", "TASK", "get_inputs", "get_init_inputs"})
_NAMESPACES = (torch, torch.nn.functional, torch.nn, torch.nn.init, math, builtins)
_LITERALS = (bool, int, float, str, bytes, type(None))


def refused(what: str, hint: str = "") -> BadInput:
    """A module that cannot become a task by itself."""
    otherwise = "write the module down as a task file (docs/task-format.md), and optimize that"
    return BadInput(what, hint=hint or otherwise)


class Sources:
    """The definitions that a task needs, in an order in which they can be executed."""

    def __init__(self, kinds: Iterable[type] = ()) -> None:
        self._used: dict[type, set[str]] = {}
        for kind in kinds:
            names = _names_used(kind)
            for base in kind.__mro__:
                self._used.setdefault(base, set()).update(names)
        self.imports: set[str] = {"import torch"}
        self.statements: list[str] = []
        self.after: list[str] = []  # what can only be said when the reference is defined
        self.main_text = ""
        self._named: dict[str, Any] = {}

    def need(self, name: str, value: Any) -> None:
        """Make sure that `name` means `value` in the task."""
        if name in self._named:
            if self._named[name] is not value and self._named[name] != value:
                raise refused(f"two things are called `{name}` in what the module needs")
            return
        if name in RESERVED:
            raise refused(f"the module needs something called `{name}`, which a task defines")
        self._named[name] = value
        if (imported := _import_of(name, value)) is not None:
            self.imports.add(imported)
        elif name in STAND_INS:
            self.statements.append(STAND_INS[name])
        elif isinstance(value, type) and issubclass(value, tuple) and hasattr(value, "_fields"):
            self.imports.add("from collections import namedtuple")
            self.statements.append(self._named_tuple(name, value))
        elif isinstance(value, type) or _original(value) is not None:
            self._define(name, value)
        elif (text := self.text_of(value)) is not None:
            self.statements.append(f"{name} = {text}")
        else:
            raise refused(f"the module needs `{name}`, a {type(value).__qualname__}")

    def text_of(self, value: Any) -> str | None:
        """Return a value as Python writes it, with the definitions that this needs; None if it
        has no text."""
        if (text := literal(value)) is not None:
            return text
        if isinstance(value, enum.Enum) and value.name in type(value).__members__:
            self.need(type(value).__name__, type(value))
            return f"{type(value).__name__}.{value.name}"
        if type(value) is functools.partial:
            return self._partial(value)
        if callable(value) and getattr(value, "__name__", "").isidentifier():
            if (public := public_name(value)) is None:
                self.need(value.__name__, value)
            return public or str(value.__name__)
        if type(value) is dict:  # such as functions by their names
            texts = {literal(key): self.text_of(item) for key, item in value.items()}
            if None not in texts and None not in texts.values():
                return "{" + ", ".join(f"{key}: {text}" for key, text in texts.items()) + "}"
        return None

    def _partial(self, value: functools.partial[Any]) -> str | None:
        """Return a function with some of its arguments, such as GELU with its approximation."""
        given = [self.text_of(one) for one in (value.func, *value.args)]
        named = {name: self.text_of(one) for name, one in value.keywords.items()}
        texts = [*given, *(f"{name}={text}" for name, text in named.items() if text is not None)]
        if None in given or None in named.values():
            return None
        self.imports.add("import functools")
        return f"functools.partial({', '.join(map(str, texts))})"

    def class_text(self, kind: type, renamed: str | None = None) -> ast.ClassDef:
        """Return a class without its constructor and the methods that only that calls."""
        node = class_node(kind)
        node.body = _used_methods(node, self._used.get(kind) or _names_used(kind))
        known = cleaned(node, lambda name: self._may_annotate(kind, name))
        assert isinstance(known, ast.ClassDef)
        known.bases, known.keywords = [], []
        needed = global_names(known)
        known.bases = [ast.parse(self._base(b), mode="eval").body for b in kind.__bases__]
        for name in needed:
            if name == node.name and renamed is not None:
                self.after.append(f"{name} = {renamed}")
            elif name not in (node.name, "torch"):
                self.need(name, found_in(kind, name))
        known.name = renamed or known.name
        return ast.fix_missing_locations(known)

    def _base(self, kind: type) -> str:
        if public := public_name(kind):
            return public
        self.need(kind.__name__, kind)
        return kind.__name__

    def _define(self, name: str, value: Any) -> None:
        function = _original(value)
        own = (function or value).__name__
        if function is None:
            self.statements.append(ast.unparse(self.class_text(value)))
        else:
            known = cleaned(function_node(function), lambda n: self._may_annotate(function, n))
            for needed in global_names(known):
                if needed not in (own, "torch"):
                    self.need(needed, found_in(function, needed))
            self.statements.append(ast.unparse(known))
        if own != name:
            self._named.setdefault(own, value)
            self.statements.append(f"{name} = {own}")

    def _named_tuple(self, name: str, kind: Any) -> str:
        """Return a definition with the same fields; methods of its own are left out."""
        defaults = [self.text_of(value) for value in kind._field_defaults.values()]
        if None in defaults:
            raise refused(f"`{name}` has a default that cannot be written down")
        shown = f", defaults=[{', '.join(map(str, defaults))}]" if defaults else ""
        return f"{name} = namedtuple({name!r}, {list(kind._fields)!r}{shown})"

    def _may_annotate(self, owner: Any, name: str) -> bool:
        if hasattr(builtins, name):
            return True
        try:
            return _import_of(name, found_in(owner, name)) is not None
        except BadInput:
            return False


def class_node(kind: type) -> ast.ClassDef:
    """Return the syntax tree of a class, found by where one of its functions was written.

    That works in notebooks, too, where a class itself does not say where it is from.
    """
    for function in _functions(kind):
        code = function.__code__
        lines = linecache.getlines(code.co_filename, function.__globals__)
        try:
            tree = ast.parse("".join(lines))
        except SyntaxError:
            continue
        for node in ast.walk(tree):
            if (
                isinstance(node, ast.ClassDef)
                and node.name == kind.__name__
                and node.lineno <= code.co_firstlineno <= (node.end_lineno or 0)
            ):
                return node
    with contextlib.suppress(OSError, TypeError, SyntaxError):  # a class without functions
        whole = ast.parse(textwrap.dedent(inspect.getsource(kind))).body[0]
        if isinstance(whole, ast.ClassDef):
            return whole
    raise refused(f"the source of class `{kind.__qualname__}` is not to be found")


def function_node(function: types.FunctionType) -> ast.stmt:
    """Return the syntax tree of a function."""
    try:
        return ast.parse(textwrap.dedent(inspect.getsource(function))).body[0]
    except (OSError, TypeError, SyntaxError):
        raise refused(f"the source of `{function.__qualname__}` is not to be found") from None


def found_in(owner: Any, name: str) -> Any:
    """Return what a name means to a class or a function: of the scope around it, or of its
    module."""
    for function in _functions(owner) if isinstance(owner, type) else [owner]:
        cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        for free, cell in cells:
            if free == name:
                return cell.cell_contents
        if name in function.__globals__:
            return function.__globals__[name]
    module = sys.modules.get(owner.__module__)  # of a class without functions
    if hasattr(module, name):
        return getattr(module, name)
    raise refused(f"`{name}` is not defined where `{owner.__qualname__}` looks for it")


def _functions(kind: type) -> Iterator[types.FunctionType]:
    for value in vars(kind).values():
        inner = inspect.unwrap(getattr(value, "__func__", getattr(value, "fget", value)) or value)
        if isinstance(inner, types.FunctionType) and inner.__code__.co_filename != "<string>":
            yield inner


def _original(value: Any) -> types.FunctionType | None:
    """Return the function as it was written, under decorators such as `functools.wraps` makes
    and under `torch.jit.script`; None for what is no function."""
    inner = inspect.unwrap(getattr(value, "_torchdynamo_inline", value))
    return inner if isinstance(inner, types.FunctionType) else None


def _names_used(kind: type) -> set[str]:
    """Return the methods that calling an instance may need, of the class and of those that it is
    of."""
    methods: dict[str, list[ast.stmt]] = {}
    for base in kind.__mro__:
        if base is object or base.__module__.partition(".")[0] == "torch":
            continue
        with contextlib.suppress(BadInput):  # one that cannot be read is needed by nobody, perhaps
            for statement in class_node(base).body:
                if isinstance(statement, ast.FunctionDef):
                    methods.setdefault(statement.name, []).append(statement)
    pending, used = ["forward", "__call__", "__getattr__"], set()
    while pending:
        name = pending.pop()
        if name in methods and name not in used:
            used.add(name)
            for method in methods[name]:
                pending += [n.attr for n in ast.walk(method) if isinstance(n, ast.Attribute)]
    return used


def _used_methods(node: ast.ClassDef, used: set[str]) -> list[ast.stmt]:
    """Return the statements of a class that calling it may need."""
    kept = [s for s in node.body if not isinstance(s, ast.FunctionDef) or s.name in used]
    return kept or [ast.Pass()]


def public_name(value: Any) -> str | None:
    """Tell how torch itself calls a class or function: `torch.nn.Linear`."""
    name = getattr(value, "__name__", "")
    for namespace in (torch.nn, torch.nn.functional, torch):
        if name and getattr(namespace, name, None) is value:
            return f"{namespace.__name__}.{name}"
    return None


def _import_of(name: str, value: Any) -> str | None:
    """Return the statement that imports a value which every task may import."""
    if isinstance(value, types.ModuleType):
        if value.__name__.partition(".")[0] not in ALLOWED_MODULES:
            return None
        plain = name == value.__name__
        return f"import {value.__name__}" if plain else f"import {value.__name__} as {name}"
    own = getattr(value, "__name__", None)
    if not isinstance(own, str):
        return None
    renamed = "" if own == name else f" as {name}"
    for namespace in _NAMESPACES:
        if getattr(namespace, own, None) is value:
            return f"from {namespace.__name__} import {own}{renamed}"
    module = getattr(value, "__module__", None) or ""
    if module.partition(".")[0] in ALLOWED_MODULES and "." not in value.__qualname__:
        return f"from {module} import {own}{renamed}"
    return None


def literal(value: Any) -> str | None:
    """Return a value as Python writes it; None where that would not give the same value again."""
    if isinstance(value, torch.dtype | torch.memory_format):
        return str(value)
    if isinstance(value, torch.device):
        return f"torch.device({str(value)!r})"
    if isinstance(value, float) and not math.isfinite(value):
        return f"float({str(value)!r})"
    if type(value) in _LITERALS:
        return repr(value)
    if type(value) in (tuple, list, torch.Size):
        parts = [literal(item) for item in value]
        if None in parts:
            return None
        inner = ", ".join(map(str, parts))
        return f"[{inner}]" if type(value) is list else f"({inner}{',' * (len(parts) == 1)})"
    if type(value) is dict:
        pairs = [(literal(key), literal(item)) for key, item in value.items()]
        if any(None in pair for pair in pairs):
            return None
        return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    return None
