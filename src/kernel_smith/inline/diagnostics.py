"""Compiler output in the coordinates of the candidate's file.

The compiler sees only the kernel's text and counts its lines from 1. `parse` turns its output into
messages, and `relocate` rewrites it as text. In both, `first_line` is the line of the candidate's
file on which the kernel's first line stands.
"""

from __future__ import annotations

import dataclasses
import re
from dataclasses import dataclass
from pathlib import PurePath
from typing import Literal

Severity = Literal["error", "warning", "note"]
_MILDER: dict[str, Severity] = {"warning": "warning", "note": "note", "remark": "note"}

_LOCATED = re.compile(
    r"(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)? "
    r"(?P<kind>fatal error|internal compiler error|error|warning|note|sorry, unimplemented"
    r"|catastrophic error|internal error|remark)(?: #[\w-]+)?: "
    r"(?P<text>.*)"
)
_NVCC_LOCATED = re.compile(
    r"(?P<file>[^\s(][^(]*)\((?P<line>\d+)\): "
    r"(?P<kind>catastrophic error|internal error|error|warning|note|remark)(?: #[\w-]+)?: "
    r"(?P<text>.*)"
)
# nvcc says afterwards which line of the kernel made it look into a header.
_NVCC_REQUIRED = re.compile(r"\s+.* at line (?P<line>\d+)(?: of (?P<file>\S+))?$")
_REQUIRED = re.compile(r"(?P<file>[^\s:][^:]*):(?P<line>\d+):(?:\d+:)?\s+required from here")
_LINKER = re.compile(
    r".*?(?P<text>undefined reference to .*|undefined symbol: .*|multiple definition of .*)"
)
# The driver and the compiler proper speak for themselves where there is no line to blame.
_UNLOCATED = re.compile(
    r"(?:\S*/)?(?P<tool>[\w.+-]+): (?:fatal error|internal compiler error|error): (?P<text>.*)"
)
# nvcc and the programs that it starts, which pad the word before the colon.
_NVCC_UNLOCATED = re.compile(
    r"(?P<tool>nvcc|ptxas|nvlink|fatbinary) (?:error|fatal)\s*: (?P<text>.*)"
)
# clang's back end, where a kernel does not fit on the device.
_BARE = re.compile(r"(?:fatal )?error: (?P<text>.*)")
_OUT_OF_MEMORY = re.compile(r"(?:.*: )?(?P<text>(?:virtual memory exhausted|out of memory).*)")


@dataclass(frozen=True)
class Message:
    """One compiler message; `line` is None where it belongs to no line of the candidate."""

    line: int | None
    severity: Severity
    text: str


def parse(log: str, source_name: str, first_line: int = 1) -> list[Message]:
    """Return the messages in a log of g++, clang++, nvcc or their linkers, in order."""
    messages: list[Message] = []
    required_from: int | None = None
    for row in log.splitlines():
        if match := _REQUIRED.match(row):
            if match["file"] == source_name:
                required_from = int(match["line"]) + first_line - 1
        elif match := _LOCATED.match(row) or _NVCC_LOCATED.match(row):
            severity = _MILDER.get(match["kind"], "error")
            if match["file"] == source_name:
                line = int(match["line"]) + first_line - 1
                messages.append(Message(line, severity, match["text"]))
            else:
                # An error in a header that the candidate's line asked for.
                where = f"{PurePath(match['file']).name}:{match['line']}"
                messages.append(Message(required_from, severity, f"{where}: {match['text']}"))
        elif messages and (match := _NVCC_REQUIRED.match(row)):
            if match["file"] == source_name:
                _blame(messages, int(match["line"]) + first_line - 1)
        elif message := _without_line(row):
            if message not in messages:
                messages.append(message)
        elif not row.startswith(" "):
            required_from = None
    return messages


def relocate(log: str, source_name: str, first_line: int, shown_as: str) -> str:
    """Return the log with the candidate's file and lines in place of the kernel's."""

    def moved(match: re.Match[str]) -> str:
        line = match["line"] or match["nvcc_line"]
        if match["at_line"]:
            return f"at line {int(match['at_line']) + first_line - 1} of {shown_as}"
        return f"{shown_as}:{int(line) + first_line - 1}" if line else f"{shown_as}:"

    name = re.escape(source_name)
    return re.sub(
        rf"(?<![\w./-]){name}(?::(?P<line>\d+)?|\((?P<nvcc_line>\d+)\))"
        rf"|\bat line (?P<at_line>\d+) of {name}\b",
        moved,
        log,
    )


def _blame(messages: list[Message], line: int) -> None:
    """Give the line to the last error or warning, if it was found in a header."""
    for index in range(len(messages) - 1, -1, -1):
        if messages[index].severity != "note":
            if messages[index].line is None:
                messages[index] = dataclasses.replace(messages[index], line=line)
            return


def _without_line(row: str) -> Message | None:
    """Return a message of the linker or the driver, which names no line."""
    if match := _LINKER.match(row) or _OUT_OF_MEMORY.match(row) or _BARE.match(row):
        return Message(None, "error", match["text"])
    match = _UNLOCATED.match(row) or _NVCC_UNLOCATED.match(row)
    # The linker's own message came before; that it failed is no news.
    if match and "ld returned" not in match["text"] and "linker command" not in match["text"]:
        return Message(None, "error", f"{match['tool']}: {match['text']}")
    return None
