"""The page about the command line, from the tree of commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from text import NOTE, code, joined, prose, table

from kernel_smith.cli import exit_codes
from kernel_smith.cli.help_words import command_tree
from kernel_smith.cli.main import app

ENVIRONMENT = (
    ("KERNEL_SMITH_STORE", "the file that runs are kept in, where `--store` names none"),
    ("KERNEL_SMITH_CACHE", "the folder for compiled kernels and verdicts"),
    ("KERNEL_SMITH_ENGINE", "the service that scores verl's answers"),
    ("KERNEL_SMITH_TOKEN", "the token that a service asks for"),
    ("OPENAI_API_KEY, OPENAI_BASE_URL", "where a model named without an address is asked"),
    ("NO_COLOR", "no colours at a terminal"),
)


def page() -> str:
    """Return the page."""
    lines = ["# Commands", "", NOTE, ""]
    lines += ["Every command of `kernel-smith`, with its arguments and options.", ""]
    lines += ["## Exit codes", ""]
    _, _, codes = (exit_codes.__doc__ or "").partition("\n\n")
    lines += [*codes.splitlines(), ""]
    lines += ["## Environment", ""]
    lines += table(("variable", "meaning"), ((code(n), text) for n, text in ENVIRONMENT))
    for words, command in _walk(command_tree(app), "kernel-smith"):
        lines += _section(words, command)
    return joined(lines)


def _walk(command: Any, words: str) -> Iterator[tuple[str, Any]]:
    """Yield every command below one, groups before what is in them."""
    for name, below in getattr(command, "commands", {}).items():
        if not below.hidden:
            yield f"{words} {name}", below
            yield from _walk(below, f"{words} {name}")


def _section(words: str, command: Any) -> list[str]:
    context = command.context_class(command, info_name=words)
    usage = " ".join(command.get_usage(context).removeprefix("Usage: ").split())
    shown = [parameter.get_help_record(context) for parameter in command.params]
    rows = [(code(left), right) for left, right in filter(None, shown)]
    # A level per word: groups stand above what is in them.
    level = "#" * len(words.split())
    return [
        f"{level} {words.removeprefix('kernel-smith ')}",
        "",
        *prose(command.help),
        f"    {usage}",
        "",
        *table(("argument or option", "meaning"), rows),
    ]
