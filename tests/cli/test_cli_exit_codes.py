"""The codes that commands end with, and the tables of them."""

from __future__ import annotations

import re
from pathlib import Path

from kernel_smith import errors
from kernel_smith.cli import exit_codes

DOCUMENTED = Path(__file__).parents[2] / "docs" / "judging.md"


def listed(text: str) -> set[int]:
    """The codes of a table's first column."""
    return {int(code) for code in re.findall(r"^\| (\d+) \|", text, re.MULTILINE)}


def test_every_code_is_in_both_tables() -> None:
    kinds = (errors.BadInput, errors.MissingPrerequisite, errors.Interrupted, errors.InternalError)
    codes = {0, exit_codes.NEGATIVE, exit_codes.UNDECIDED, *(kind.exit_code for kind in kinds)}
    assert listed(str(exit_codes.__doc__)) == codes
    table = DOCUMENTED.read_text().partition("| exit code |")[2].partition("\n\n")[0]
    assert listed(table) == codes
