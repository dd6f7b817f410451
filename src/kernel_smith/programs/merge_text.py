"""Kernel text of two programs as one: functions of one text in the place of the other's."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

_BEGINNING = re.compile(r'(?m)^(?=extern "C")')
_NAME = re.compile(r'extern "C"[^({;]*?(\w+)\s*\(')


def exported_functions(text: str) -> tuple[str, dict[str, str]] | None:
    """Return what stands before the exported functions, and each of them by its name; None if
    two have the same name."""
    preamble, *blocks = _BEGINNING.split(text)
    found: dict[str, str] = {}
    for block in blocks:
        named = _NAME.match(block)
        if named is None or named[1] in found:
            return None
        found[named[1]] = block
    return preamble, found


def merged_text(
    host: str, donor: str, called: Collection[str], others: Collection[str], suffix: str
) -> tuple[str, Mapping[str, str]] | None:
    """Return the host's text with the functions that are called as the donor has them, and new
    names for those that others call as well. None where the texts differ in more than their
    functions."""
    own, theirs = exported_functions(host), exported_functions(donor)
    if own is None or theirs is None or own[0].strip() != theirs[0].strip():
        return None
    preamble, functions = own
    names: dict[str, str] = {}
    for name in called:
        new = theirs[1].get(name)
        if new is None:
            return None
        if functions.get(name, "").strip() == new.strip():
            continue
        if name in others:
            names[name] = f"{name}_{suffix}"
            if names[name] in functions:
                return None
            functions[names[name]] = re.sub(rf"\b{name}\b", names[name], new)
        else:
            functions[name] = new
    return "\n\n".join([preamble.strip(), *(f.strip() for f in functions.values())]) + "\n", names
