"""What a judge keeps of the memory that it has freed."""

from __future__ import annotations

import ast
import subprocess
import sys

KEEP = """
import numpy
from pathlib import Path
from kernel_smith.evaluation.sandbox.memory import {names}

def held():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 >> 20

keep_freed_memory()
{keep}
numpy.ones(1 << 16)
before = held()
blocks = [numpy.full(64 << 20, 1, numpy.uint8) for _ in range(2)]
blocks.clear()
kept = held() - before
trim_freed_memory()
print([kept, held() - before])
"""
NAMES = "keep_freed_memory, keep_large_memory, trim_freed_memory"


def kept_and_trimmed(keep: str) -> list[int]:
    """In MiB, of two pieces of 64."""
    program = KEEP.format(names=NAMES, keep=keep)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    found: list[int] = ast.literal_eval(done.stdout.decode())
    return found


def test_a_judge_keeps_large_memory_until_it_is_trimmed() -> None:
    kept, left = kept_and_trimmed("keep_large_memory()")
    assert kept >= 120
    assert left < 20


def test_others_give_it_back_like_any_program() -> None:
    kept, _ = kept_and_trimmed("")
    assert kept < 20
