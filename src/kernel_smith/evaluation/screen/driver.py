"""`screen`: parse a candidate, apply every rule, and put the decisive findings first."""

from __future__ import annotations

import ast
import warnings

from kernel_smith.evaluation.screen.calls import forbidden_calls, tensor_subclasses
from kernel_smith.evaluation.screen.code import Code, Rule
from kernel_smith.evaluation.screen.fallback import fallbacks
from kernel_smith.evaluation.screen.imports import forbidden_modules
from kernel_smith.evaluation.screen.inspection import stack_inspection
from kernel_smith.evaluation.screen.patching import patched_modules, switches
from kernel_smith.evaluation.screen.structure import kernel_source, model_class
from kernel_smith.records import Finding, Reason

RULES: tuple[Rule, ...] = (
    model_class,
    kernel_source,
    forbidden_modules,
    forbidden_calls,
    tensor_subclasses,
    patched_modules,
    switches,
    stack_inspection,
    fallbacks,
)

# What a candidate is for comes before how it goes about it: `import inspect` is the means, and
# looking at the caller is the matter.
_DECISIVE_FIRST = (
    Reason.SYNTAX_ERROR,
    Reason.NO_MODELNEW,
    Reason.STACK_INSPECTION,
    Reason.MONKEYPATCH,
    Reason.FORBIDDEN_CALL,
    Reason.FORBIDDEN_IMPORT,
    Reason.FALLBACK,
    Reason.NO_KERNEL_SOURCE,
)


def screen(source: str, name: str = "candidate.py") -> list[Finding]:
    """What speaks against a candidate, the decisive finding first; empty if nothing does."""
    try:
        with warnings.catch_warnings():
            # An invalid escape in a C++ string is no concern of the screen.
            warnings.simplefilter("ignore")
            tree = ast.parse(source)
        code = Code(_without_main_block(tree), name)
        found = {finding: None for rule in RULES for finding in rule(code)}
    except SyntaxError as error:
        return [_syntax_error(name, error.lineno, error.msg)]
    except (RecursionError, MemoryError):
        return [_syntax_error(name, 1, "the code is nested too deeply to be read")]
    except ValueError as error:
        # Null bytes and lone surrogates.
        return [_syntax_error(name, 1, str(error))]
    return sorted(found, key=lambda finding: (_DECISIVE_FIRST.index(finding.reason), finding.line))


def _syntax_error(name: str, line: int | None, what: str) -> Finding:
    # The parser counts lines from 0 for an unfinished first line, and may give none at all.
    at = max(line or 1, 1)
    return Finding(reason=Reason.SYNTAX_ERROR, line=at, message=f"{name}:{at}: {what}")


def _without_main_block(tree: ast.Module) -> ast.Module:
    """Leave out `if __name__ == "__main__":`, where authors test: it never runs in the judge."""
    renamed = any(
        isinstance(node, ast.Name) and node.id == "__name__" and isinstance(node.ctx, ast.Store)
        for node in ast.walk(tree)
    )
    if not renamed:
        tree.body = [
            kept
            for statement in tree.body
            for kept in (_else_branch(statement) if _is_main_block(statement) else [statement])
        ]
    return tree


def _is_main_block(statement: ast.stmt) -> bool:
    match statement:
        case ast.If(
            test=ast.Compare(
                left=ast.Name(id="__name__"),
                ops=[ast.Eq()],
                comparators=[ast.Constant(value="__main__")],
            )
        ):
            return True
    return False


def _else_branch(statement: ast.stmt) -> list[ast.stmt]:
    return statement.orelse if isinstance(statement, ast.If) else []
