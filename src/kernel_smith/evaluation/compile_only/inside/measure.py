"""Registers, spills and errors, from what the compilers say."""

from __future__ import annotations

import re
from typing import NamedTuple

_PTXAS_REGISTERS = re.compile(r"Used (\d+) registers")
_PTXAS_SPILLS = re.compile(r"(\d+) bytes spill stores")
_PTXAS_ERROR = re.compile(r"^ptxas .*; error\s*: (.+)$", re.MULTILINE)
_AMD_REGISTERS = re.compile(r"^\s*\.vgpr_count:\s*(\d+)", re.MULTILINE)
_AMD_SPILLS = re.compile(r"^\s*\.vgpr_spill_count:\s*(\d+)", re.MULTILINE)
_REGISTER_BYTES = 4


class Usage(NamedTuple):
    """Per thread. None where the compiler did not say."""

    registers: int | None
    spill_bytes: int | None


def read_ptxas_log(text: str) -> Usage:
    """From the output of `ptxas -v`. Functions that were not inlined count with the largest."""
    return Usage(_largest(_PTXAS_REGISTERS, text), _largest(_PTXAS_SPILLS, text))


def ptxas_errors(text: str) -> str:
    """What the assembler complains of; empty if it does not."""
    found = dict.fromkeys(_PTXAS_ERROR.findall(text))
    return "ptxas: " + "; ".join(found) if found else ""


def read_amdgcn(text: str) -> Usage:
    """From the metadata at the end of AMD assembly."""
    spilled = _largest(_AMD_SPILLS, text)
    return Usage(
        _largest(_AMD_REGISTERS, text), None if spilled is None else spilled * _REGISTER_BYTES
    )


def _largest(pattern: re.Pattern[str], text: str) -> int | None:
    return max(map(int, pattern.findall(text)), default=None)
