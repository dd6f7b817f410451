"""What a function of a task file accepts by keyword, read from its definition."""

from __future__ import annotations

import ast
from dataclasses import dataclass


@dataclass(frozen=True)
class Signature:
    keywords: tuple[str, ...]
    required: tuple[str, ...]
    by_position_only: tuple[str, ...]
    takes_any: bool

    def accepts(self, keyword: str) -> bool:
        return self.takes_any or keyword in self.keywords


def signature_of(function: ast.FunctionDef) -> Signature:
    """Return the keywords a call may and must give; `by_position_only` are the required rest."""
    args = function.args
    positional = [arg.arg for arg in (*args.posonlyargs, *args.args)]
    without_default = positional[: len(positional) - len(args.defaults)]
    by_position_only = {arg.arg for arg in args.posonlyargs}
    required_keyword_only = [
        arg.arg
        for arg, default in zip(args.kwonlyargs, args.kw_defaults, strict=True)
        if default is None
    ]
    return Signature(
        keywords=tuple(arg.arg for arg in (*args.args, *args.kwonlyargs)),
        required=(
            *(name for name in without_default if name not in by_position_only),
            *required_keyword_only,
        ),
        by_position_only=tuple(name for name in without_default if name in by_position_only),
        takes_any=args.kwarg is not None,
    )
