"""Which commit a suite is said to be at."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from kernel_smith.bench.commits import commit_of


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    def git(*words: str) -> None:
        who = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost"]
        subprocess.run(["git", *who, *words], cwd=tmp_path, check=True, capture_output=True)

    (tmp_path / "level1").mkdir()
    (tmp_path / "level1" / "1_Add.py").write_text("")
    (tmp_path / ".gitignore").write_text("copied/\n")
    (tmp_path / "copied").mkdir()
    (tmp_path / "copied" / "1_Add.py").write_text("")
    git("init", "--quiet")
    git("add", ".")
    git("commit", "--quiet", "--message", "all")
    return tmp_path


def test_a_folder_and_a_file_are_at_their_checkouts_commit(checkout: Path) -> None:
    commit = commit_of(checkout)
    assert commit is not None and len(commit) == 40
    assert commit_of(checkout / "level1") == commit == commit_of(checkout / "level1" / "1_Add.py")


def test_a_copy_that_a_project_ignores_is_at_no_commit_of_it(checkout: Path) -> None:
    assert commit_of(checkout / "copied") is None
    assert commit_of(checkout / "nowhere") is None
