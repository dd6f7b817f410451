"""Python in the documentation: it can be read, and what it imports from here is there."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
EXAMPLES = [
    pytest.param(text, id=f"{page.stem}-{number}")
    for page in [*ROOT.glob("*.md"), *sorted(ROOT.glob("docs/*.md"))]
    for number, text in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.S | re.M)
    )
]


def test_there_are_examples() -> None:
    assert len(EXAMPLES) > 20


@pytest.mark.parametrize("text", EXAMPLES)
def test_what_an_example_imports_is_there(text: str) -> None:
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("kernel_smith."):
            module = import_module(str(node.module))
            assert [each.name for each in node.names if not hasattr(module, each.name)] == []
