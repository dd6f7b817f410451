"""A state in words: a program, its verdict in a line, and the options, for one who reads."""

from __future__ import annotations

from kernel_smith.proposers.chooser.options import Menu
from kernel_smith.records import Evaluation
from kernel_smith.records.prose import headline


def state_text(menu: Menu, evaluation: Evaluation) -> str:
    """Return the question: which of these changes makes the program faster?"""
    lines = [f"{option.label}: {option}" for option in menu.options]
    if menu.left_out:
        lines.append(f"({menu.left_out} more are not listed.)")
    return "\n".join(
        [
            menu.parent.source.strip(),
            "",
            f"Verdict: {headline(evaluation)}",
            "",
            "Changes that can be made:",
            *lines,
        ]
    )
