"""What a mined definition can do without: docstrings, log lines, decorators that only register or
document, and annotations with names from elsewhere. The computation stays as it is.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable

_LOGGERS = frozenset({"logger", "_logger", "log", "LOG", "logging", "warnings"})
_SILENT_CALLS = frozenset({"print", "warn", "warn_once", "rank_zero_warn", "_log_api_usage_once"})
_DECORATORS = frozenset(
    {
        *("auto_docstring", "add_start_docstrings", "add_start_docstrings_to_model_forward"),
        *("register_notrace_module", "register_notrace_function", "register_model"),
        *("use_kernel_forward_from_hub", "use_kernel_func_from_hub", "use_kernelized_func"),
        *("use_experts_implementation", "deprecate_kwarg", "can_return_tuple", "capture_outputs"),
        *("merge_with_config_defaults", "apply_forward_hook", "maybe_allow_in_graph"),
        *("script", "script_method", "ignore", "unused", "export", "compile", "disable"),
        *("allow_in_graph", "wrap", "deprecated", "deprecated_arg", "add_code_sample_docstrings"),
        *("replace_return_docstrings", "script_if_tracing", "compiler_disable"),
    }
)
_WITH_FIELDS = frozenset({"dataclass"})


def cleaned(statement: ast.stmt, is_known: Callable[[str], bool]) -> ast.stmt:
    """A copy without ballast. `is_known` says which names an annotation may hold."""
    result = _Cleaner(is_known).visit(copy.deepcopy(statement))
    assert isinstance(result, ast.stmt)
    return ast.fix_missing_locations(result)


class _Cleaner(ast.NodeTransformer):
    def __init__(self, is_known: Callable[[str], bool]) -> None:
        self._is_known = is_known

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.AST:
        self._tidy(node)
        has_fields = bool({_last_name(d) for d in node.decorator_list} & _WITH_FIELDS)
        body: list[ast.stmt] = []
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign) and has_fields:
                statement.annotation = self._plain(statement.annotation) or ast.Name("object")
                body.append(statement)
            else:
                visited = self.visit(statement)
                body += [visited] if visited is not None else []
        node.body = body or [ast.Pass()]
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        self._tidy(node)
        arguments = node.args
        optional = [a for a in (arguments.vararg, arguments.kwarg) if a is not None]
        for argument in [
            *arguments.posonlyargs,
            *arguments.args,
            *arguments.kwonlyargs,
            *optional,
        ]:
            argument.annotation = self._plain(argument.annotation)
        node.returns = self._plain(node.returns)
        self.generic_visit(node)
        node.body = node.body or [ast.Pass()]
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST | None:
        if node.value is None:
            return None
        assigned = ast.Assign(targets=[node.target], value=node.value)
        return self.generic_visit(ast.copy_location(assigned, node))

    def visit_Expr(self, node: ast.Expr) -> ast.AST | None:
        return None if _is_silent(node.value) else self.generic_visit(node)

    def visit_If(self, node: ast.If) -> ast.AST | None:
        self.generic_visit(node)
        if not node.body and not node.orelse:
            return None
        node.body = node.body or [ast.Pass()]
        return node

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, (ast.For, ast.While, ast.With, ast.ExceptHandler, ast.Try)):
            node.body = node.body or [ast.Pass()]
        return node

    def _tidy(self, node: ast.ClassDef | ast.FunctionDef) -> None:
        if ast.get_docstring(node, clean=False) is not None:
            node.body = node.body[1:]
        node.decorator_list = [d for d in node.decorator_list if _last_name(d) not in _DECORATORS]

    def _plain(self, annotation: ast.expr | None) -> ast.expr | None:
        if annotation is None or isinstance(annotation, ast.Constant):
            return None
        names = [n.id for n in ast.walk(annotation) if isinstance(n, ast.Name)]
        quoted = any(
            isinstance(n, ast.Constant) and isinstance(n.value, str) for n in ast.walk(annotation)
        )
        return annotation if not quoted and all(map(self._is_known, names)) else None


def _is_silent(value: ast.expr) -> bool:
    """A line that tells people something and computes nothing."""
    if isinstance(value, ast.Constant):
        return True
    if not isinstance(value, ast.Call):
        return False
    return _root(value.func) in _LOGGERS or _last_name(value.func) in _SILENT_CALLS


def _root(node: ast.expr) -> str:
    while isinstance(node, (ast.Attribute, ast.Call, ast.Subscript)):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _last_name(node: ast.expr) -> str:
    if isinstance(node, ast.Call):
        node = node.func
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""
