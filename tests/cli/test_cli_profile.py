"""`kernel-smith profile`: a program is run, and its modules are named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch.nn.modules import module as hooks

from kernel_smith.shipping.profiling import profile_script, watching
from kernel_smith.shipping.profiling.limits import Rates, dtype_of
from kernel_smith.shipping.profiling.watching import Watcher
from kernel_smith.tasks import read_task

Cli = Callable[..., Any]
pytestmark = pytest.mark.slow

PROGRAM = """
import sys
import threading

import torch
from torch import nn


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x, scale=1.0):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True)) * self.weight * scale


class Table(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("table", torch.randn(100, 100))

    def forward(self, x):
        return x @ self.table


if __name__ == "__main__":
    print("this is the program", *sys.argv[1:])
    model = nn.Sequential(Norm(100), Table(), Norm(100))
    with torch.no_grad():
        for _ in range(5):
            model(torch.randn(64, 100))
        model[0](torch.randn(3, 100))
        model[0](x=torch.randn(3, 100))
        model[0](torch.randn(7, 100), scale=2.0)
    threads = [threading.Thread(target=model[1], args=(torch.randn(5, 100),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
"""


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "program.py"
    path.write_text(PROGRAM)
    return path


def test_modules_are_named_with_what_they_take(cli: Cli, script: Path, tmp_path: Path) -> None:
    done = cli("profile", script, "-o", "tasks", "--json", "--", "--fast")
    assert "this is the program --fast" in done.err
    found = {(one["class_name"], one["shapes"]): one for one in done.json["findings"]}
    assert set(found) == {
        *(("Norm", "64x100"), ("Norm", "3x100"), ("Table", "64x100"), ("Sequential", "64x100")),
        *(("Norm", "7x100"), ("Table", "5x100")),
    }
    assert found["Norm", "3x100"]["calls"] == 2
    assert found["Norm", "7x100"]["calls"] == 1
    assert "2.0]" in Path(found["Norm", "7x100"]["file"]).read_text("utf-8")
    assert found["Table", "5x100"]["calls"] == 4
    norm = found["Norm", "64x100"]
    assert norm["calls"] == 10  # two modules that one kernel would serve
    assert norm["least_seconds"] > 0
    assert norm["possible"] <= norm["share"] <= 1
    assert read_task(Path(norm["file"])).name == norm["name"]
    table = found["Table", "64x100"]
    assert table["file"] is None
    assert "10000 elements" in table["why_no_task"]
    assert len(list((tmp_path / "tasks").iterdir())) == 3


def test_people_get_a_table(cli: Cli, script: Path) -> None:
    done = cli("profile", script, "--most", 1)
    assert done.code == 0
    assert "per call" in done.out
    assert "next: kernel-smith profile" in done.out


def test_programs_that_fail_are_refused(cli: Cli, tmp_path: Path) -> None:
    cli("profile", "absent.py").complains(2, "absent.py: no such file")
    cli("profile", ".").complains(2, ".: a folder, expected a Python program")
    failing = tmp_path / "failing.py"
    failing.write_text("raise ValueError('no')")
    cli("profile", failing).complains(2, "ValueError('no')", "has to run by itself")
    failing.write_text("raise SystemExit(3)")
    cli("profile", failing).complains(2, "exits with 3")
    failing.write_text("print('no modules')")
    assert cli("profile", failing).code == 1


def test_no_hooks_are_left_behind() -> None:
    """torch.compile warns of hooks that are there."""
    with Watcher().watching():
        torch.nn.ReLU()(torch.ones(3))
    assert not any(
        kept
        for name, kept in vars(hooks).items()
        if name.startswith("_global_") and "hooks" in name
    )


def test_limits_are_those_of_the_type_that_a_module_computes_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured: list[torch.dtype] = []

    def rates_of(device: torch.device, dtype: torch.dtype) -> Rates:
        measured.append(dtype)
        return Rates(1e9, 1e9 if dtype is torch.float32 else 1e12)

    monkeypatch.setattr(Rates, "of", rates_of)
    script = tmp_path / "halves.py"
    script.write_text(
        "import torch\n"
        "for kind in (torch.float32, torch.bfloat16):\n"
        "    torch.nn.Linear(64, 64, dtype=kind)(torch.randn(256, 64, dtype=kind))\n"
    )
    wide, half = sorted(profile_script(script, [], 5).findings, key=lambda one: -one.least_seconds)
    assert set(measured) == {torch.float32, torch.bfloat16}
    assert wide.least_seconds == 2 * 256 * 64 * 64 / 1e9
    assert half.least_seconds < wide.least_seconds / 10
    assert dtype_of(torch.nn.ReLU(), (torch.ones(2).half(),)) is torch.float16
    assert dtype_of(torch.nn.ReLU(), (torch.ones(2).to(torch.float8_e5m2),)) is torch.float32


def test_arguments_are_kept_as_far_as_there_is_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watching, "free_bytes", lambda device: 8 * 4096)
    watcher = Watcher()
    with watcher.watching():
        for rows in (3, 900, 4, 1000):  # of four bytes each
            torch.nn.ReLU()(torch.ones(rows))
            torch.nn.ReLU()(torch.ones(2 * rows))
    kept = {group.shapes for group in watcher.groups.values() if group.arguments is not None}
    assert kept == {"3", "6", "900", "4", "8"}
