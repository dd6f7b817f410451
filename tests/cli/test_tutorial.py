"""The tutorial, followed to the letter: its files are saved, its commands run in their order."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PAGE = (Path(__file__).parents[2] / "docs" / "tutorial.md").read_text(encoding="utf-8")
FILES = re.findall(r"[Ss]ave this(?:\n| )as `([a-z_]+\.py)`:\n\n```python\n(.*?)```", PAGE, re.S)
# As on the page, with less to do.
LESS = {"evaluate": ("--max-seconds", 0.2), "optimize": ("--evaluations", 2)}
# So little measuring may not show that something is faster, or be too noisy to say.
HONEST_CODES = {0, 1, 5}
# How a line may begin where another measuring came out differently: a verdict, who leads.
INSTEAD = {"ok:": "unstable:", "The": "This"}


def test_every_program_of_the_page_is_saved() -> None:
    assert [name for name, _ in FILES] == [
        "gated_residual.py",
        "first.py",
        "mine.py",
        "program.py",
    ]
    assert len(FILES) == PAGE.count("```python")


@pytest.mark.slow
@pytest.mark.usefixtures("shared_judge", "quick_runs")
def test_the_tutorial_works(cli: Callable[..., Any], tmp_path: Path) -> None:
    for name, text in FILES:
        (tmp_path / name).write_text(text.replace("2048", "64"))  # takes less time to check
    tried = 0
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.S):
        for part in filter(None, re.split(r"^\$ ", block, flags=re.M)):
            command, *shown = part.splitlines()
            program, *words = shlex.split(command)
            assert program == "kernel-smith"
            done = cli(*words, *LESS.get(words[0], ()))
            assert done.code in HONEST_CODES, (command, done.out, done.err)
            seen = labels((done.out + done.err).splitlines())
            missing = [each for each in labels(shown) - seen if INSTEAD.get(each) not in seen]
            assert missing == [], (command, done.out, done.err)
            tried += 1
    assert tried == 8
    for left in ("gated_residual_best.py", "report.html", "parent.py"):
        assert (tmp_path / left).is_file(), left
    used = subprocess.run(
        [sys.executable, "program.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert used.returncode == 0, used.stderr
    (said,) = re.findall(r"print\(fast\.counts\)  # (.*)", PAGE)
    assert used.stdout.strip() == said


def labels(lines: list[str]) -> set[str]:
    """Return the words that lines begin with: figures differ from machine to machine."""
    words = {line.split()[0] for line in lines if line.strip()}
    return {word for word in words if not re.match(r"[\d.]", word)}
