"""Commands in the documentation: each exists, with every option that it is shown with."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from kernel_smith.cli.main import app

ROOT = Path(__file__).parents[2]
ALL: Any = typer.main.get_command(app)
PAGES = [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("results/*.md")]
PAGES += [*ROOT.glob("src/kernel_smith/knowledge/guides/*.md")]
PAGES += [ROOT / "src/kernel_smith/agents/SKILL.md"]
# What is no command is an argument of this one: `bench cpu` is `bench run cpu`.
MEANT = {"bench": "run", "ship": "write"}
# In blocks and within sentences; a command goes on in the next line after a backslash.
SHOWN = re.compile(r"kernel-smith((?:[^\S\n]+(?!#)(?:\\\n\s*)?[^\s`#|;]+)+)")


def commands(text: str) -> Iterator[list[str]]:
    for found in SHOWN.findall(text):
        yield found.replace("\\\n", " ").split()


def problem(words: list[str]) -> str | None:
    """What is wrong with a command; None: nothing, or it is no command."""
    command = ALL
    named = []
    while words and words[0] in getattr(command, "commands", {}):
        named.append(words[0])
        command = command.commands[words.pop(0)]
    if not named:
        return None  # the program's name in a sentence
    if named[-1] in MEANT:
        command = command.commands[MEANT[named[-1]]]
    known = {spelt for each in command.params for spelt in each.opts} | {"--help"}
    own = words[: words.index("--")] if "--" in words else words  # the rest is another program's
    used = {word.partition("=")[0].rstrip(".,:)/") for word in own if word.startswith("--")}
    unknown = sorted(used - known)
    return f"{' '.join(named)} has no {', '.join(unknown)}" if unknown else None


@pytest.mark.parametrize(
    ("text", "wrong"),
    [
        ("kernel-smith evaluate TASK mine.py --fresh  # --no-comment", None),
        ("kernel-smith bench cpu --evaluations 20", None),
        ("kernel-smith profile program.py -o tasks -- --its own", None),
        ("kernel-smith is a program --which does", None),
        ("kernel-smith evaluate TASK \\\n  --target 3", "evaluate has no --target"),
        ("use `kernel-smith runs best RUN --steps 3`", "runs best has no --steps"),
    ],
)
def test_a_wrong_option_is_found(text: str, wrong: str | None) -> None:
    (words,) = commands(text)
    assert problem(words) == wrong


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_commands_are_up_to_date(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert [wrong for words in commands(text) if (wrong := problem(words))] == []


def test_many_commands_are_shown() -> None:
    shown = [words for page in PAGES for words in commands(page.read_text(encoding="utf-8"))]
    assert len(shown) > 150
