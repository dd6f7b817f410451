"""The README: every command of it runs, every page that it names is there."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
from packaging.specifiers import SpecifierSet

from kernel_smith.tasks import SUITES
from kernel_smith.testing.openai_server import OpenAIServer, Reply

Cli = Callable[..., Any]
ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
COMMANDS = [
    line.partition("  #")[0].strip() for line in README.splitlines() if re.match(r" {4}\S", line)
]
PROBLEM = """
import torch

TASK = {"variants": ["large"]}


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.sort(torch.relu(x).repeat(30, 1, 1), dim=0).values[0] + 1


def get_inputs():
    return [torch.randn(32, 64)]
"""
PROGRAM = """
import torch

model = torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.LayerNorm(64), torch.nn.GELU())
with torch.no_grad():
    for _ in range(5):
        model(torch.randn(256, 64))
"""
# The same commands, with little to do. What is not here runs as it stands.
QUICKLY = {
    "kernel-smith optimize": "--evaluations 1 --proposer mutator --start start.py",
    "kernel-smith resume": "--evaluations 3",
    "kernel-smith bench": "--evaluations 1 --proposer mutator --baseline eager",
    "kernel-smith evaluate": "--seeds 1 --half-width 10 --max-seconds 0.5",
    # These would go on for ever; other tests let them.
    "kernel-smith serve": "--help",
    "kernel-smith dashboard": "--help",
    "kernel-smith mcp": "--help",
}
BY_MAKE = ("make demo", "make test", "source .venv/bin/activate")
# So little work may not show that something is faster, or leave a step to learn from.
HONEST_CODES = {0, 1, 5}


def test_the_readme_is_short_and_its_links_lead_somewhere() -> None:
    assert len(README.splitlines()) <= 150
    links = re.findall(r"\]\((?!https?:)([^)#]+)", README)
    assert len(links) > 15
    assert [link for link in links if not (ROOT / link).exists()] == []


def test_what_make_does_is_in_the_makefile() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in BY_MAKE[:2]:
        assert command in COMMANDS and f"\n{command.removeprefix('make ')}: env\n" in makefile


def test_what_make_installs_is_for_every_python_that_the_readme_names() -> None:
    """Debian 12 has Python 3.11.2; an environment of a later 3.11 takes what does not run there."""
    assert "On Linux with Python 3.11 or 3.12" in README
    pins = (ROOT / "requirements.lock").read_text(encoding="utf-8").split()
    wanted = {pin: metadata.metadata(pin.partition("==")[0])["Requires-Python"] for pin in pins}
    assert [
        pin
        for pin, versions in wanted.items()
        if not all(python in SpecifierSet(versions or "") for python in ("3.11.0", "3.12.0"))
    ] == []


@pytest.mark.slow
@pytest.mark.usefixtures("shared_judge", "quick_runs")
def test_every_command_runs(
    cli: Cli, tmp_path: Path, honest_source: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    softmax = small_suite(tmp_path / "suite") / "start_cpp.py"
    monkeypatch.setitem(SUITES, "cpu", tmp_path / "suite")
    (tmp_path / "my_problem.py").write_text(PROBLEM)
    (tmp_path / "my_program.py").write_text(PROGRAM)
    (tmp_path / "start.py").write_text(honest_source)
    tried = []
    with OpenAIServer([Reply("I have no idea.")]) as models:
        for command in COMMANDS:
            if command in BY_MAKE:
                continue
            told = command.startswith("kernel-smith tell")
            mine = f"{honest_source}\nMINE = True\n" if told else softmax.read_text()
            (tmp_path / "mine.py").write_text(mine)
            run(cli, command.replace("http://127.0.0.1:8000/v1", models.base_url))
            tried.append(command)
    assert len(tried) > 12
    for left in ("my_problem_best.py", "report.html", "my_kernel", "parent.py", "data"):
        assert (tmp_path / left).exists(), left


def small_suite(folder: Path) -> Path:
    """A suite of the one task that is named, with one workload of its three; returns its folder."""
    there = Path(shutil.copytree(SUITES["cpu"] / "row_softmax", folder / "row_softmax"))
    task = (there / "task.py").read_text()
    small, others = re.subn(r'        "(?:wide|odd)": .*\n', "", task)
    assert others == 2
    (there / "task.py").write_text(small)
    return there


def run(cli: Cli, command: str) -> None:
    (quickly,) = [more for start, more in QUICKLY.items() if command.startswith(start)] or [""]
    program, *words = shlex.split(f"{command} {quickly}")
    assert program == "kernel-smith"
    done = cli(*words)
    assert done.code in HONEST_CODES, (command, done.out, done.err)
    assert "Traceback" not in done.err, (command, done.err)
