"""The site: made without a warning; its reference pages say what the code says."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MAKE = ROOT / "docs" / "make"
# `sphinx-build`, which makes millions of nodes and throws none of them away.
SPHINX = "import gc, sys; gc.disable(); from sphinx.cmd.build import main; sys.exit(main())"


@pytest.fixture
def make(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The folder whose modules make the pages, importable for one test."""
    before = set(sys.modules)
    monkeypatch.syspath_prepend(str(MAKE))
    yield MAKE
    for name in set(sys.modules) - before:
        if str(getattr(sys.modules[name], "__file__", "")).startswith(str(MAKE)):
            del sys.modules[name]


def test_a_stale_page_is_named(
    make: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    spec = importlib.util.spec_from_file_location("make_docs", make / "__main__.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setattr(module, "FOLDER", tmp_path)
    assert module.main([]) == 0
    assert module.main(["--check"]) == 0
    (tmp_path / "python.md").write_text("something else")
    assert module.main(["--check"]) == 1
    said = capsys.readouterr().err
    assert "docs/reference/python.md" in said and "records.md" not in said
    assert "hint: run `python docs/make`" in said


def test_every_command_and_option_is_described() -> None:
    from kernel_smith.cli.main import app

    text = (ROOT / "docs/reference/commands.md").read_text(encoding="utf-8")
    assert text.count("\n## ") >= len(app.registered_commands) + len(app.registered_groups)
    for heading in ("## optimize", "### runs best", "### bench run", "#### serve tokens add"):
        assert f"\n{heading}\n" in text
    assert "| `--device-minutes NUMBER` | Stop after so long spent evaluating." in text


@pytest.mark.slow
def test_the_site_is_made_without_a_warning(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    # All but writing the pages down: every page is read, every link followed.
    strictly = ["-q", "-W", "--keep-going", "-n", "-b", "dummy", "-d", tmp_path / "read"]
    strictly += ["-D", "smartquotes=0"]  # they differ for the eye alone
    done = subprocess.run(
        [sys.executable, "-c", SPHINX, *strictly, "-c", MAKE, ".", tmp_path / "site"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
