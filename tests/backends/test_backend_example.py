"""A backend in a package of its own: found by its entry point, judged like ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "backend_c"

PROGRAM = '''
import torch
from kernel_smith.inline import compiled

kernels = compiled("c", r"""
#include <stdint.h>

void combine(const float *restrict x, const float *restrict y, float *restrict out, int64_t n) {
    for (int64_t i = 0; i < n; ++i) out[i] = 3.0f * x[i] + y[i]%s;
}
""", functions="void combine(const float* x, const float* y, float* out, int64_t n);")


class ModelNew(torch.nn.Module):
    def forward(self, x, y):
        out = torch.empty_like(x)
        kernels.combine(x, y, out, x.numel())
        return out
'''
TASK = Path(__file__).parent.parent.parent / "src" / "kernel_smith" / "testing" / "backend_task.py"
CLI = "from kernel_smith.cli.entry import main; main()"


@pytest.fixture
def installed(tmp_path: Path) -> dict[str, str]:
    """An environment in which the example is installed."""
    info = tmp_path / "site" / "kernel_smith_c-0.1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: kernel-smith-c\nVersion: 0.1.0\n")
    lines = (EXAMPLE / "pyproject.toml").read_text().splitlines()
    (line,) = [line for line in lines if "kernel_smith_c:" in line]
    entry = line.replace('"', "")
    (info / "entry_points.txt").write_text(f"[kernel_smith.backends]\n{entry}\n")
    folders = [str(EXAMPLE), str(info.parent), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, folders))}


def evaluate(
    program: Path, environment: dict[str, str], *arguments: str
) -> subprocess.CompletedProcess[str]:
    command = ["evaluate", str(TASK), str(program), "--backend", "c", "--max-seconds", "1"]
    return subprocess.run(
        [sys.executable, "-c", CLI, *command, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
    )


JUDGING = """
import sys
from pathlib import Path
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records import Candidate, Options, Sampling
from kernel_smith.records.prose import render
from kernel_smith.tasks import read_task

sampling = Sampling(target=10.0, unstable_above=1e9, min_rounds=3, max_rounds=4, max_seconds=5)
options = Options(seeds=2, sampling=sampling)
with LocalEngine() as engine:
    for source in sys.argv[2:]:
        candidate = Candidate(source=source, backend="c", name="mine.py")
        print(render(engine.evaluate(read_task(Path(sys.argv[1])), candidate, options)))
"""


@pytest.mark.slow
def test_its_candidates_are_judged(installed: dict[str, str]) -> None:
    sources = [PROGRAM % " + undeclared", PROGRAM % ""]
    done = subprocess.run(
        [sys.executable, "-c", JUDGING, str(TASK), *sources],
        env=installed,
        capture_output=True,
        text=True,
        timeout=120,
    )
    broken, known, right = done.stdout.partition("compile-error: compiler-rejected")
    assert broken == "" and known, done.stdout + done.stderr
    assert "mine.py:9" in right
    assert "ok: correct" in right, done.stdout + done.stderr


def test_without_its_package_it_is_unknown(tmp_path: Path) -> None:
    program = tmp_path / "mine.py"
    program.write_text(PROGRAM % "")
    unknown = evaluate(program, dict(os.environ))
    assert unknown.returncode == 2
    assert "no backend is called 'c'" in unknown.stderr
    assert "hint: choose one of: cpp, triton, cuda, maca, hip" in unknown.stderr


def test_a_backend_that_cannot_be_loaded_is_named(
    tmp_path: Path, installed: dict[str, str]
) -> None:
    program = tmp_path / "mine.py"
    program.write_text(PROGRAM % "")
    without = installed["PYTHONPATH"].split(os.pathsep)[1:]
    broken = evaluate(program, {**installed, "PYTHONPATH": os.pathsep.join(without)})
    assert broken.returncode == 3
    assert "backend c (kernel_smith_c:CBackend) cannot be loaded" in broken.stderr
    assert "uninstall the package" in broken.stderr
