"""A method declared in a TOML file: one that is there, with parameters of somebody's own.

    method = "islands"          # or any other that --method knows
    islands = 5
    proposers = {model = 2.0, mutator = 0.5}

    [budget]
    rounds = 40

    [settings.plan-edit.edits]  # what a method or a worker is given
    tile-loop = "Go through a loop in tiles."

What is not named is as in the preset.
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from kernel_smith.errors import BadInput, reason_of
from kernel_smith.records import RunConfig

_ALLOWED = (
    "method",
    "proposers",
    "budget",
    "islands",
    "elites_per_cell",
    "features",
    "migrate_every",
    "proposals_in_flight",
    "exemplars",
    "settings",
)


def is_method_file(name: str | None) -> bool:
    return name is not None and name.endswith(".toml")


def read_method(name: str) -> dict[str, Any]:
    """Return the fields of a configuration that a file declares; `method` is among them."""
    path = Path(name)
    try:
        declared = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        raise BadInput(
            f"{path}: cannot be read ({reason_of(error)})",
            hint="name a TOML file, or a method: kernel-smith optimize --help lists them",
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: not TOML: {error}", hint="correct that line") from None
    unknown = [key for key in declared if key not in _ALLOWED]
    if unknown:
        raise BadInput(
            f"{path}: unknown setting {unknown[0]!r}", hint=f"choose: {', '.join(_ALLOWED)}"
        )
    if not isinstance(declared.get("method"), str):
        raise BadInput(f"{path}: names no method", hint='add a line such as: method = "islands"')
    return declared


def declared_config(config: RunConfig, declared: dict[str, Any], name: str) -> RunConfig:
    """Return a configuration with what a file declares in place of its own."""
    try:
        return RunConfig.model_validate(config.model_dump() | declared)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadInput(
            f"{name}: {where} is {first['input']!r}: {first['msg']}",
            hint=f"correct {where} in that file",
        ) from None
