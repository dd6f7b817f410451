"""The models that a command line names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from kernel_smith.errors import BadInput


def model_settings(named: list[str] | None, file: Path | None) -> dict[str, Any] | None:
    """The models of the command line, or those of a file; None if there are none."""
    if named is None and file is None:
        return None
    from kernel_smith.proposers.model import make_settings, parse_model, read_settings

    if named is not None and file is not None:
        raise BadInput("--model and --models together", hint="name all models in the file")
    if file is not None:
        return read_settings(file).model_dump(mode="json")
    models = [parse_model(text).model_dump(mode="json") for text in named or ()]
    return make_settings({"models": models}).model_dump(mode="json")
