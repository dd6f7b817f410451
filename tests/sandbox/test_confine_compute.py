"""Honest work goes on inside: PyTorch, threads, and a compiler in its own sandbox."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from kernel_smith.evaluation.sandbox.confine import landlock, limits, mounts, seccomp

# One thread: this process was forked from one whose OpenMP threads exist no more, and waiting for
# them would take for ever. Several threads are what the test with torch is for.
SOURCE = """
#include <cmath>
#include <cstdint>
extern "C" double twice(double x) {
    double sum = 0;
    #pragma omp parallel for reduction(+ : sum) num_threads(1)
    for (int64_t i = 0; i < 2; ++i) sum += x;
    return std::fabs(sum);
}
"""
# A process of its own: as a zygote does, it imports torch and forks before it computes anything.
WITH_TORCH = """
import json, os, sys
from dataclasses import replace
from pathlib import Path
import torch
from kernel_smith.evaluation.sandbox.confine import default_readable, modest_policy, run_confined

def compute():
    torch.set_num_threads(2)
    x = torch.arange(1 << 20, dtype=torch.float32)
    square = torch.ones(64, 64) @ torch.ones(64, 64)
    image = torch.nn.functional.conv2d(torch.ones(1, 8, 32, 32), torch.ones(8, 8, 3, 3))
    return {
        "elementwise": torch.sin(x).square().add(torch.cos(x).square()).sum().item(),
        "matmul": square.sum().item(),
        "convolution": image.sum().item(),
        "threads": len(os.listdir("/proc/self/task")),
    }

policy = modest_policy(Path(sys.argv[1]))
policy = replace(policy, readable=default_readable(), memory_bytes=1 << 30)
outcome = run_confined(compute, policy)
print(json.dumps([outcome.report.enforced, outcome.error, outcome.exit_code, outcome.value]))
"""


@pytest.mark.slow
def test_torch_computes_with_two_threads(tmp_path):
    command = [sys.executable, "-c", WITH_TORCH, str(tmp_path)]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    enforced, error, exit_code, value = json.loads(answer.stdout)
    assert (error, exit_code) == (None, 0), answer.stderr
    assert value["elementwise"] == pytest.approx(1 << 20)
    assert value["matmul"] == 64**3
    assert value["convolution"] == 8 * 30 * 30 * 8 * 9
    assert value["threads"] >= 2
    for feature in (seccomp.FEATURE, landlock.FILES, mounts.SCRATCH, limits.DATA):
        if feature not in enforced:
            pytest.skip(f"this machine lacks: {feature}")


def test_a_compiler_works_in_its_own_sandbox(confined):
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("this machine lacks: g++")

    def build():
        Path("kernel.cpp").write_text(SOURCE)
        flags = ["-O3", "-march=native", "-fopenmp", "-shared", "-fPIC"]
        command = [compiler, *flags, "kernel.cpp", "-o", "kernel.so"]
        answer = subprocess.run(command, capture_output=True, text=True)
        if answer.returncode != 0:
            return answer.stderr
        library = ctypes.CDLL(os.path.abspath("kernel.so"))
        library.twice.argtypes, library.twice.restype = [ctypes.c_double], ctypes.c_double
        return library.twice(21.0)

    changes = {"allow_exec": True, "memory_bytes": 1 << 30, "scratch_bytes": 64 << 20}
    assert confined.value(build, seccomp.FEATURE, landlock.FILES, **changes) == 42.0


def test_a_compiler_cannot_read_a_secret_into_its_output(confined, open_folder):
    compiler = shutil.which("g++")
    if compiler is None:
        pytest.skip("this machine lacks: g++")
    secret = open_folder / "secret.h"
    secret.write_text("int seed = 1234;")

    def build():
        Path("kernel.cpp").write_text(f'#include "{secret}"\n')
        command = [compiler, "-E", "kernel.cpp"]
        answer = subprocess.run(command, capture_output=True, text=True)
        return [answer.returncode != 0, "1234" in answer.stdout]

    assert confined.value(build, landlock.FILES, allow_exec=True) == [True, False]
