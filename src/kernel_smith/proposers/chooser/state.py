"""A state in words: a program, its verdict in a line, and the options, for one who reads."""

from __future__ import annotations

from kernel_smith.proposers.chooser.options import Menu


def state_text(menu: Menu, verdict: str) -> str:
    """Return what a choice is made from. `verdict`: the judge's, in a line."""
    lines = [f"{option.label}: {option}" for option in menu.options]
    if menu.left_out:
        lines.append(f"({menu.left_out} more are not listed.)")
    program = menu.parent.source.strip()
    return "\n".join([program, "", f"Verdict: {verdict}", "", "Changes that can be made:", *lines])
