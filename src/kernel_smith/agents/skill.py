"""The skill file that teaches a coding agent how to go about it."""

from __future__ import annotations

from importlib import resources


def skill_text() -> str:
    return (resources.files("kernel_smith.agents") / "SKILL.md").read_text("utf-8")
