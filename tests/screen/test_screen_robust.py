"""Whatever the text, the screen answers with findings and never with an exception."""

import subprocess
import sys

from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.evaluation.screen import screen
from kernel_smith.records import Finding

CANDIDATE = '''"""Twice."""
from __future__ import annotations
import os, sys, contextlib
import torch
from torch import nn
from kernel_smith.inline import cpp as build

SOURCE = r"""
extern "C" void twice(const float* x, float* y, long n) {
    for (long i = 0; i < n; ++i) y[i] = 2 * x[i];
}
"""
t = torch
t = t
a, (b, *c) = torch, [nn, os]
getattr(os, "system")
try:
    kernels = build(SOURCE)
except* RuntimeError as error:
    raise
class Base(nn.Module, metaclass=type):
    limit: int = 3
    def __init__(self, /, n=3, *args, key: str = "", **rest) -> None:
        global counter
        counter = [i for i in range(n) if (j := i)]
    @staticmethod
    def helper(x):
        match x:
            case {"a": y, **z}: return lambda q: (yield)
            case [first, *others] | (first, *others): return first
            case _ as whole: return whole
class ModelNew(Base):
    def forward(self, x):
        def inner():
            nonlocal x
            x = {k: v for k, v in vars(self).items()}
        with contextlib.suppress(KeyError) as s, torch.no_grad():
            del self.limit
        try:
            torch.backends.x.y = sys.modules["torch"]
        except (KeyError, ValueError):
            return kernels.twice(x)
        finally:
            os.environ["A"] += "b"
        return kernels.twice(x)
if __name__ == "__main__":
    ModelNew()
'''
LINES = CANDIDATE.splitlines(keepends=True)
TOKENS = CANDIDATE.split(" ")


def check(text: str) -> None:
    findings = screen(text, "any.py")
    assert all(isinstance(finding, Finding) for finding in findings)
    assert all(finding.message.startswith(f"any.py:{finding.line}: ") for finding in findings)
    assert all(finding.line >= 1 for finding in findings)


def test_the_unchanged_text_is_valid_python():
    compile(CANDIDATE.replace("except*", "except"), "candidate", "exec")
    assert screen(CANDIDATE)


@settings(deadline=None)
@given(st.text())
def test_any_text(text):
    check(text)


@settings(deadline=None)
@given(st.lists(st.sampled_from(TOKENS), max_size=40))
def test_any_words(words):
    check(" ".join(words))


@settings(deadline=None)
@given(st.sets(st.integers(0, len(LINES) - 1), max_size=8))
def test_a_candidate_with_lines_missing(missing):
    check("".join(line for number, line in enumerate(LINES) if number not in missing))


@settings(deadline=None)
@given(st.integers(0, len(CANDIDATE)), st.integers(0, 40), st.text(max_size=3))
def test_a_candidate_with_a_span_replaced(start, length, text):
    check(CANDIDATE[:start] + text + CANDIDATE[start + length :])


@settings(deadline=None)
@given(
    st.sampled_from(["[{}]", "-{}", "({},)", "f({})", "{}.a", "{}[0]", "lambda: {}", "{} + 1"]),
    st.integers(1, 3000),
)
def test_deep_nesting(shape, depth):
    before, after = shape.split("{}")
    check(f"import torch\nx = {before * depth}torch{after * depth}\n")


def test_a_circle_of_aliases_ends(reasons):
    assert reasons("a = b\nb = a\na.x = 1\ntorch = torch") == []


def test_a_long_chain_of_aliases_ends(reasons):
    links = "\n".join(f"a{i} = a{i - 1}" for i in range(1999, 0, -1))
    assert reasons(f"a0 = torch\n{links}\na1999.x = 1") == []


def test_screening_leaves_torch_unloaded():
    code = (
        "import sys; from kernel_smith.evaluation.screen import screen; screen('import torch'); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
