"""How options are declared, over all commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from kernel_smith.cli.main import app


def options(command: Any, path: str = "kernel-smith") -> Iterator[tuple[str, Any]]:
    for name, below in getattr(command, "commands", {}).items():
        yield from options(below, f"{path} {name}")
    for parameter in command.params:
        if parameter.param_type_name == "option":
            yield path, parameter


def test_no_value_is_called_as_its_option_is() -> None:
    """Typer 0.27 spells such an option in capitals: `--LEVEL`, and does not know `--level`."""
    found = list(options(typer.main.get_command(app)))
    assert len(found) > 100
    assert [(path, o.name) for path, o in found if o.metavar == o.name.upper()] == []
    assert [spelt for _, o in found for spelt in o.opts if spelt != spelt.lower()] == []
