"""Programs that are parsed by several threads at once."""

from __future__ import annotations

import ast
import warnings
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kernel_smith.programs.parsing import parse_python


def test_a_parser_that_another_thread_disturbed_is_asked_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = []
    real = ast.parse

    def disturbed(source: str) -> Any:
        asked.append(source)
        if len(asked) < 3:
            raise SystemError("AST constructor recursion depth mismatch")
        return real(source)

    monkeypatch.setattr(ast, "parse", disturbed)
    assert [type(node) for node in parse_python("x = 1").body] == [ast.Assign]
    assert len(asked) == 3


def test_what_is_no_python_is_said_at_once() -> None:
    with pytest.raises(SyntaxError):
        parse_python("def (")


def test_nothing_warns_of_a_careless_escape_sequence_in_whichever_thread() -> None:
    before = list(warnings.filters)
    sources = [f"x = {number}, '\\d'" for number in range(400)]
    with ThreadPoolExecutor(4) as threads:
        assert len(list(threads.map(parse_python, sources))) == 400
    assert warnings.filters == before
