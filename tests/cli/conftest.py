"""Running the command line: in this process where that suffices, as a program where it matters."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.cli.main import main
from kernel_smith.errors import UserError
from kernel_smith.evaluation import engines
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.proposers import seed

PROGRAM = [sys.executable, "-c", "from kernel_smith.cli.main import main; main()"]


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """Its output as JSON in the strict sense: NaN is not a number there."""

        def refuse(constant: str) -> None:
            raise ValueError(f"{constant} is not JSON")

        return json.loads(self.out, parse_constant=refuse)

    def complains(self, code: int, *words: str) -> None:
        """It failed with this code, one `error:` line, one `hint:` line, and no traceback."""
        assert self.code == code, self.out + self.err
        lines = self.err.splitlines()
        assert sum(line.startswith("error: ") for line in lines) == 1, self.err
        assert sum(line.startswith("hint: ") for line in lines) == 1, self.err
        assert "Traceback" not in self.err
        for word in words:
            assert word in self.err


Cli = Callable[..., Done]


@pytest.fixture
def cli(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Cli:
    """`cli("tasks", "list")` in this process; an exception that escapes fails the test."""
    monkeypatch.setenv("KERNEL_SMITH_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> Done:
        capfd.readouterr()
        monkeypatch.setattr(sys, "argv", ["kernel-smith", *map(str, arguments)])
        with pytest.raises(SystemExit) as caught:
            main()
        out, err = capfd.readouterr()
        return Done(int(caught.value.code or 0), out, err)

    return run


@pytest.fixture
def shared_judge(borrowing: type[LocalEngine], monkeypatch: pytest.MonkeyPatch) -> None:
    """Commands ask the judge of the test run, instead of waiting for one of their own."""
    monkeypatch.setattr(engines, "LocalEngine", borrowing)


@pytest.fixture
def refuse_seeds(monkeypatch: pytest.MonkeyPatch) -> Callable[[type[UserError]], None]:
    """`refuse_seeds(kind)`: every recipe for the compiler's kernel ends with such an error, at once
    instead of after seconds in the compiler's process."""

    def refuse(kind: type[UserError]) -> None:
        class Refusing:
            def __init__(self, *_: object, **__: object) -> None: ...

            def make(self, *_: object) -> None:
                raise kind("the compiler's kernel cannot be used", hint="none")

            def close(self) -> None: ...

        for module in (seed, seed.make):
            monkeypatch.setattr(module, "SeedMaker", Refusing)

    return refuse


SLOW_REFERENCE = """
import torch

TASK = {"variants": ["large"]}


class Model(torch.nn.Module):
    def forward(self, x):  # torch.compile does not see through it, either
        copies = torch.relu(x).repeat(30, 1, 1)
        return torch.sort(copies, dim=0).values[0] + 1


def get_inputs():
    return [torch.randn(32, 64)]
"""


@pytest.fixture
def slow(tmp_path: Path, honest_source: str, wrong_source: str) -> Path:
    """A folder with a task that is easy to beat, `slow`, and programs for it."""
    folder = tmp_path / "slow"
    folder.mkdir()
    (folder / "task.py").write_text(SLOW_REFERENCE)
    (folder / "start_cpp.py").write_text(honest_source)
    (tmp_path / "right.py").write_text(honest_source)
    (tmp_path / "wrong.py").write_text(wrong_source)
    return tmp_path


@pytest.fixture
def program() -> list[str]:
    """The command line without arguments, as a command of the system's."""
    return PROGRAM


@pytest.fixture
def start_program(tmp_path: Path, program: list[str]) -> Callable[..., subprocess.Popen[str]]:
    """Starts the command line as a program in a session of its own, like a shell does."""

    def start(*arguments: object, **environment: object) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*program, *map(str, arguments)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            stdin=subprocess.DEVNULL,
            text=True,
            cwd=tmp_path,
            env={**os.environ, **{name: str(value) for name, value in environment.items()}},
            start_new_session=True,
            # As a shell would leave it, even if whoever runs the tests ignores it.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )

    return start


@pytest.fixture
def run_program(start_program: Callable[..., subprocess.Popen[str]]) -> Cli:
    """Like `cli`, as a program of its own, with other environment variables."""

    def run(*arguments: object, **environment: object) -> Done:
        process = start_program(*arguments, **environment)
        out, err = process.communicate(timeout=120)
        return Done(process.returncode, out, err)

    return run
