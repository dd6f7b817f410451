"""`kernel-smith mcp` before it serves; what it serves is tested in `tests/agents`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kernel_smith.agents.skill import skill_text
from kernel_smith.cli import mcp

Cli = Callable[..., Any]


def test_the_skill_file_is_printed_also_without_the_package(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "find_spec", lambda name: None)
    done = cli("mcp", "--skill")
    assert (done.code, done.out) == (0, skill_text())


def test_a_missing_package_is_named_with_the_remedy(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mcp, "find_spec", lambda name: None)
    cli("mcp").complains(3, "the package mcp is not installed", "pip install 'kernel-smith[mcp]'")
