"""The tree of commands, with help in words that are not Python's.

The framework names values after types: `<int range>`, `<list[Path]>`, and required arguments in
braces. Here a value is a NUMBER, a PATH or a TEXT where an option gives it no better name.
"""

from __future__ import annotations

import functools
import re
from typing import Any

import typer

WIDEST = 120  # columns of help: lines of text that are longer are hard to read

_WORDS = {"int": "NUMBER", "float": "NUMBER", "integer": "NUMBER", "str": "TEXT", "path": "PATH"}
_TYPE = re.compile(r" <(\w+)[^>]*>(\.\.\.)?$")


@functools.cache  # making it takes most of a short command's time
def command_tree(app: typer.Typer) -> Any:
    """Return the command that the application is."""
    tree = typer.main.get_command(app)
    tree.context_settings["max_content_width"] = WIDEST
    _rename(tree)
    return tree


def _rename(command: Any) -> None:
    for below in getattr(command, "commands", {}).values():
        _rename(below)
    for parameter in command.params:
        if parameter.param_type_name == "argument":
            parameter.metavar = parameter.metavar or parameter.name.upper()
        _name_values(parameter)
    _name_usage(command)


def _name_values(parameter: Any) -> None:
    """An argument's name says what it is; an option's value needs a word."""
    record = parameter.get_help_record
    is_option = parameter.param_type_name == "option"

    def renamed(context: Any) -> tuple[str, str] | None:
        shown = record(context)
        if shown is None:
            return None
        return _TYPE.sub(lambda found: _word(found[1]) if is_option else "", shown[0]), shown[1]

    parameter.get_help_record = renamed


def _word(type_name: str) -> str:
    return f" {_WORDS.get(type_name, 'TEXT')}"


def _name_usage(command: Any) -> None:
    pieces = command.collect_usage_pieces

    def renamed(context: Any) -> list[str]:
        return [re.sub(r"^\{(.*)\}(\.*)$", r"\1\2", piece) for piece in pieces(context)]

    command.collect_usage_pieces = renamed
