"""The fingerprint sees through wording, and through nothing else."""

from __future__ import annotations

import random
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.programs import fingerprint
from kernel_smith.programs.c_text import c_tokens
from kernel_smith.programs.normalise import program
from kernel_smith.records import Candidate

_TESTS = Path(__file__).parents[1]
_CPP = sorted((_TESTS / "honest" / "candidates").glob("*.py"))
_TRITON = sorted((_TESTS / "gpu" / "honest").glob("*.py"))

_CPP_SOURCE = '''
import torch
from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>
#define TWICE(x) ((x) * 2)
extern "C" void scale(const float* x, float* y, long n) {
    for (long i = 0; i < n; ++i) y[i] = TWICE(x[i]) - 1.5f;
}
"""
kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        out = torch.empty_like(x)
        count = x.numel()
        kernels.scale(x, out, count)
        return out
'''


def print_of(source: str, backend: str = "cpp") -> str:
    return fingerprint(Candidate(backend=backend, source=source))


# Files in which only the docstring spans lines, so that a comment may follow every other line.
_ONE_DOCSTRING = [path for path in _TRITON if path.read_text().count('"""') == 2]


@settings(deadline=None)
@given(st.randoms(use_true_random=False), st.sampled_from(_ONE_DOCSTRING))
def test_python_comments_and_blank_lines_keep_the_fingerprint(
    rng: random.Random, path: Path
) -> None:
    source = path.read_text()
    head, doc, code = source.split('"""', 2)
    lines = []
    for line in code.split("\n"):
        lines.append(line + rng.choice(["", "   ", "  # a note"]))
        lines += rng.choice([[], [""], ["# a line of its own"]])
    assert print_of(f'{head}"""{doc} And more."""' + "\n".join(lines)) == print_of(source)


@settings(deadline=None)
@given(st.randoms(use_true_random=False))
def test_comments_and_formatting_of_kernel_text_keep_the_fingerprint(rng: random.Random) -> None:
    head, kernel, tail = _CPP_SOURCE.split('"""')
    blanks = [" ", "  ", "\n", "\t", " /* why */ ", " // why\n"]
    lines = []
    for line in kernel.split("\n"):
        directive = line.startswith("#")
        lines.append(
            re.sub(" ", "  ", line) + rng.choice(["", " // note"])
            if directive
            else re.sub(" +", lambda _: rng.choice(blanks), line)
        )
        lines.append(rng.choice(["", "// a line of its own"]))
    changed = "\n".join(lines)
    assert print_of(f'{head}"""{changed}"""{tail}') == print_of(_CPP_SOURCE)


@pytest.mark.parametrize("path", _CPP + _TRITON, ids=lambda path: path.stem)
def test_every_changed_number_changes_the_fingerprint(path: Path) -> None:
    source = path.read_text()
    before = print_of(source)
    code = source.split('"""', 2)[2] if source.startswith('"""') else source
    offset = len(source) - len(code)
    numbers = [
        match
        for match in re.finditer(r"(?<![\w.])\d+(?![\w.])", code)
        if not re.search(r"#(?!include|pragma|define|if)|//|/\*", _line_before(code, match))
    ]
    for match in numbers[:12:3]:
        at = offset + match.start()
        changed = source[:at] + str(int(match.group()) + 1) + source[offset + match.end() :]
        assert print_of(changed) != before, _line_before(code, match) + match.group()


def _line_before(code: str, match: re.Match[str]) -> str:
    return code[code.rfind("\n", 0, match.start()) + 1 : match.start()]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("- 1.5f", "+ 1.5f"),
        ("1.5f", "1.5"),
        ("i < n", "i <= n"),
        ("++i", "i++"),
        ("TWICE(x) (", "TWICE (x) ("),
        ("* 2)", "* 3)"),
        ("const float* x, float* y", "const float* y, float* x"),
        ("kernels.scale(x, out, count)", "kernels.scale(out, x, count)"),
        ("x.numel()", "x.numel() - 1"),
        ("return out", "return out.clone()"),
        ("def forward(self, x)", "def forward(self, y)"),
    ],
)
def test_any_change_of_the_program_changes_the_fingerprint(old: str, new: str) -> None:
    assert old in _CPP_SOURCE
    assert print_of(_CPP_SOURCE.replace(old, new)) != print_of(_CPP_SOURCE)


def test_local_variables_may_be_called_anything() -> None:
    renamed = _CPP_SOURCE.replace("out", "result").replace("count", "how_many")
    assert print_of(renamed) == print_of(_CPP_SOURCE)


def test_exchanged_local_variables_are_another_program() -> None:
    one = "def f(x):\n    a = x + 1\n    b = x * 2\n    return a - b\n"
    assert print_of(one) != print_of(one.replace("a - b", "b - a"))
    assert print_of(one) == print_of("def f(x):\n    c = x + 1\n    a = x * 2\n    return c - a\n")


@pytest.mark.parametrize(
    "source",
    [
        "def f(x):\n    global name\n    name = x\n",
        "def f(x):\n    name = x\n    return locals()\n",
        "def f(x):\n    class C:\n        name = x\n    return C\n",
        "def f(x):\n    import name\n    name = name.y\n    return name\n",
        "def f(x):\n    return [name for _ in x]\n",
        "def f(name):\n    name = name + 1\n    return name\n",
        "def f(x):\n    def g(name):\n        return name\n    name = g(name=x)\n    return name\n",
        "def f(x):\n    try:\n        x()\n    except E as name:\n        name = 1\n",
        "name = 1\n",
    ],
)
def test_names_that_others_may_see_are_kept(source: str) -> None:
    assert print_of(source) != print_of(source.replace("name", "other"))


def test_a_closure_follows_its_renamed_variable() -> None:
    source = (
        "def f(x):\n    a = x\n    def g():\n        b = a + 1\n        return b\n    return g\n"
    )
    renamed = source.replace("a = x", "c = x").replace("a + 1", "c + 1")
    assert print_of(renamed) == print_of(source)
    assert print_of(source.replace("a + 1", "b + 1")) != print_of(source)


def test_a_decorator_does_not_see_the_local_variables() -> None:
    source = "@tuned(a)\ndef f(x):\n    a = x\n    return a\n"
    renamed = "@tuned(a)\ndef f(x):\n    c = x\n    return c\n"
    assert print_of(renamed) == print_of(source)
    assert print_of(source.replace("tuned(a)", "tuned(c)")) != print_of(source)


def test_docstrings_count_only_if_they_are_read() -> None:
    one, other = '"""One."""\nx = 1\n', '"""Other."""\nx = 1\n'
    assert print_of(one) == print_of(other)
    assert print_of(one + "y = __doc__\n") != print_of(other + "y = __doc__\n")


def test_strings_that_are_no_kernel_text_are_kept_to_the_letter() -> None:
    assert print_of("x = 'a b'\n") != print_of("x = 'a  b'\n")


def test_fragments_of_kernel_text_are_kept_to_the_letter() -> None:
    source = "x = f'a(\"{y} // no comment\");\\n b;'\n"
    assert print_of(source) != print_of(source.replace("no", "a"))


def test_backends_do_not_share_fingerprints() -> None:
    assert print_of("x = 1\n", "cpp") != print_of("x = 1\n", "triton")


@pytest.mark.parametrize(
    "source",
    ["", "def f(:\n", "x = 1\x00", "(" * 5000, "x = " + "-" * 100_000 + "1", "x = 0x" + "f" * 9999],
)
def test_broken_source_is_compared_as_it_stands(source: str) -> None:
    assert print_of(source) == print_of(source)
    assert print_of(source) != print_of(source + "\ny = 2")


@settings(deadline=None)
@given(st.text(max_size=200))
def test_no_text_raises(text: str) -> None:
    program(text)
    c_tokens(text)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a - -b;", "a --b;"),
        ("x > > y;", "x >> y;"),
        ('"a  b";', '"a b";'),
        ('"// a";', '"// b";'),
        ("#define F (x)\n", "#define F(x)\n"),
        ('#define U "http://a"\n', '#define U "http://b"\n'),
        ("#define A 1\nB;", "#define A 1 B;"),
        ('R"(a // b)";', 'R"(a // c)";'),
        ("1'000;", "1000;"),
        ("ab;", "a b;"),
    ],
)
def test_kernel_texts_that_differ_have_different_tokens(one: str, other: str) -> None:
    assert c_tokens(one) != c_tokens(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("a+b;", "a + b;"),
        ("a /* x */ + b;", "a + b;"),
        ("f(a,\n  b);", "f(a, b);"),
        ("  #  pragma  omp simd // x\nf;", "#pragma omp simd\nf;"),
        ("#define F \\\n 1\nf;", "#define F 1\nf;"),
        ("a; // x \\\n more\nb;", "a; b;"),
    ],
)
def test_kernel_texts_that_say_the_same_have_the_same_tokens(one: str, other: str) -> None:
    assert c_tokens(one) == c_tokens(other)
