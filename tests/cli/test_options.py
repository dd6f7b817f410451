"""How commands, arguments and options are declared, over all commands."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

import pytest

from kernel_smith.cli.help_words import command_tree
from kernel_smith.cli.main import app


def options(command: Any, path: str = "kernel-smith") -> Iterator[tuple[str, Any]]:
    for name, below in getattr(command, "commands", {}).items():
        yield from options(below, f"{path} {name}")
    for parameter in command.params:
        if parameter.param_type_name == "option":
            yield path, parameter


def test_no_value_is_called_as_its_option_is() -> None:
    """Typer 0.27 spells such an option in capitals: `--LEVEL`, and does not know `--level`."""
    found = list(options(command_tree(app)))
    assert len(found) > 100
    assert [(path, o.name) for path, o in found if o.metavar == o.name.upper()] == []
    assert [spelt for _, o in found for spelt in o.opts if spelt != spelt.lower()] == []


def commands(command: Any, path: str = "kernel-smith") -> Iterator[tuple[str, Any]]:
    yield path, command
    for name, below in getattr(command, "commands", {}).items():
        yield from commands(below, f"{path} {name}")


def context_of(command: Any, path: str) -> Any:
    return command.context_class(command, info_name=path, **command.context_settings)


@pytest.mark.parametrize("columns", [80, 140])
def test_help_is_in_words_and_nothing_is_cut(columns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", str(columns))
    for path, command in commands(command_tree(app)):
        text = command.get_help(context_of(command, path))
        names = [line.split("  ")[0] for line in text.splitlines()]
        assert not [name for name in names if "<" in name or "{" in name], path
        assert max(map(len, names)) < columns
        listed = text.partition("Commands:")[2].splitlines()
        assert not [line for line in listed if line.endswith("...")], path


def test_help_uses_a_wide_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "140")
    tree = command_tree(app)
    widths = [len(line) for line in tree.get_help(context_of(tree, "kernel-smith")).splitlines()]
    command = tree.commands["optimize"]
    within = command.context_class(command, info_name="optimize", parent=context_of(tree, "ks"))
    widths += [len(line) for line in command.get_help(within).splitlines()]
    assert 100 < max(widths) <= 120


def test_an_option_takes_the_same_kind_of_value_everywhere() -> None:
    """`--tokens` was a number of `optimize` and a file of `serve`."""
    kinds, tree = defaultdict(set), command_tree(app)
    for path, option in options(tree):
        if not option.is_flag:
            shown = option.get_help_record(context_of(tree, path))[0]
            kinds[option.opts[0]].add("NUMBER" if shown.endswith(" NUMBER") else "a word")
    assert {name for name, kind in kinds.items() if len(kind) > 1} == set()


def test_files_are_written_where_output_says() -> None:
    """`ship` and `profile` called it `--to`."""
    tree = command_tree(app)
    places = {path for path, option in options(tree) if "--to" in option.opts}
    assert places == {"kernel-smith runs export"}  # where it names a tracker
