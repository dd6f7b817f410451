"""From a model's answer to a program, or to the reason why there is none.

The reason is written for the model: it is sent back with one request to do better.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from kernel_smith.programs.parsing import parse_python
from kernel_smith.proposers.model.blocks import Block, find_blocks, without_thoughts
from kernel_smith.proposers.model.edits import EditRefused, apply_edits, find_edits, has_edits
from kernel_smith.records import MAX_SOURCE

_SUMMARY_LENGTH = 240
_CHANGE = re.compile(r"^[ \t*#>-]*(?:change|summary|hypothesis)\**\s*:\**\s*(\S.*)$", re.I | re.M)
_PROGRAM_START = re.compile(r"^(?:import |from \w|\"\"\"|''')", re.M)


@dataclass(frozen=True)
class Program:
    source: str
    summary: str
    mode: Literal["full", "edits"]


@dataclass(frozen=True)
class Refusal:
    """Why an answer holds no usable program, in words for the model."""

    reason: str


def parse_answer(text: str, base: str, unfold: Callable[[str], str] = str) -> Program | Refusal:
    """Return the program of an answer: written in full, or `base` with the answer's edits applied.

    `unfold` puts back what `base` does not show.
    """
    said = without_thoughts(text)
    blocks, prose = find_blocks(said)
    edited = has_edits(said)
    found = _edited(said, base) if edited else _written(said, blocks)
    if isinstance(found, Refusal):
        return found
    found = unfold(found)
    if len(found) > MAX_SOURCE:
        return Refusal(f"The program is longer than {MAX_SOURCE} characters.")
    if _same(found, unfold(base)):
        return Refusal("The program is the one that you were given. Change something.")
    return Program(found, _summary(prose), "edits" if edited else "full")


def _edited(said: str, base: str) -> str | Refusal:
    try:
        edited = apply_edits(base, find_edits(said))
    except EditRefused as error:
        return Refusal(str(error))
    problem = _problem(edited)
    return Refusal(f"After your edits, {problem}") if problem else edited


def _written(said: str, blocks: list[Block]) -> str | Refusal:
    """Return the last block that is a complete program; without any block, the answer itself."""
    if not blocks:
        start = _PROGRAM_START.search(said)
        if "class ModelNew" not in said or start is None:
            return Refusal("There is no program in your answer.")
        blocks = [Block(said[start.start() :], closed=False)]
    named = [block for block in blocks if "class ModelNew" in block.code]
    if not named:
        return Refusal("None of your code blocks defines `class ModelNew`.")
    for block in reversed(named):
        if _problem(block.code) is None and (block.closed or _returns(block.code)):
            missing = _imported_files(block, blocks)
            if missing:
                return Refusal(
                    f"The program imports {missing}, another of your files. A candidate is one "
                    "file: put everything into it."
                )
            return block.code
    last = named[-1]
    cut = "" if last.closed else " The code block is not closed: the answer seems to be cut off."
    return Refusal(f"The program is not complete: {_problem(last.code) or 'it ends early.'}{cut}")


def _problem(source: str) -> str | None:
    """Return what keeps a text from being a candidate, as far as its syntax shows."""
    tree = _tree(source)
    if isinstance(tree, str):
        return tree
    if _forward(tree) is None:
        return "there is no `class ModelNew` with a `forward` method at module level."
    return None


def _tree(source: str) -> ast.Module | str:
    try:
        return parse_python(source)
    except SyntaxError as error:
        return f"it is not valid Python: line {error.lineno}: {error.msg}."
    except (ValueError, RecursionError, MemoryError):
        return "it is not valid Python."


def _forward(tree: ast.Module) -> ast.FunctionDef | None:
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == "ModelNew":
            for item in node.body:
                if isinstance(item, ast.FunctionDef) and item.name == "forward":
                    return item
    return None


def _returns(source: str) -> bool:
    """Does `forward` come to its end? A text that was cut off may still be valid Python."""
    tree = _tree(source)
    forward = None if isinstance(tree, str) else _forward(tree)
    return forward is not None and any(isinstance(node, ast.Return) for node in ast.walk(forward))


def _imported_files(program: Block, blocks: list[Block]) -> str:
    others = {block.file for block in blocks if block.file and block is not program}
    if not others:
        return ""
    tree = _tree(program.code)
    assert isinstance(tree, ast.Module)
    modules: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            modules.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            modules.add(node.module or "")
    return ", ".join(sorted(modules & others))


def _same(source: str, base: str) -> bool:
    """Equal but for white space at the ends of lines and of the file."""
    first, second = source.strip().splitlines(), base.strip().splitlines()
    return [line.rstrip() for line in first] == [line.rstrip() for line in second]


def _summary(prose: str) -> str:
    """Return what the model says it changed: the line it was asked for, or its first words."""
    match = _CHANGE.search(prose)
    lines = (line.strip() for line in prose.splitlines())
    first = next((line for line in lines if line and line[0] not in "<=>"), "")
    said = " ".join((match[1] if match else first).split()).strip("*`")
    return said if len(said) <= _SUMMARY_LENGTH else said[: _SUMMARY_LENGTH - 3] + "..."
