"""Kernel sources in a candidate's syntax tree."""

import ast
import textwrap

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.inline.literals import Literal, find_sources, has_kernel_call

IMPORT = "from kernel_smith.inline import cpp\n"


def tree_of(text: str) -> ast.Module:
    return ast.parse(textwrap.dedent(text))


def sources(text: str) -> list[str]:
    return [literal.source for literal in find_sources(tree_of(text))]


@pytest.mark.parametrize(
    "text",
    [
        "from kernel_smith.inline import cpp\ncpp('x')",
        "from kernel_smith.inline import cpp as build\nbuild('x')",
        "from kernel_smith.inline import *\ncpp('x')",
        "from kernel_smith import inline\ninline.cpp('x')",
        "from kernel_smith import inline as i\ni.cpp('x')",
        "import kernel_smith.inline\nkernel_smith.inline.cpp('x')",
        "import kernel_smith.inline as i\ni.cpp(source='x')",
        "import kernel_smith as k\nk.inline.cpp('x')",
        "from kernel_smith.inline import cpp\nbuild = cpp\nmake: object = build\nmake('x')",
        "def f():\n    return make('x')\nmake = i.cpp\nimport kernel_smith.inline as i",
    ],
)
def test_the_helper_is_recognised_however_it_was_imported(text: str) -> None:
    assert sources(text) == ["x"]
    assert has_kernel_call(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "def cpp(x): ...\ncpp('x')",
        "from other import cpp\ncpp('x')",
        "from .inline import cpp\ncpp('x')",
        "import kernel_smith.inline\ninline.cpp('x')",
        "from kernel_smith.inline import cpp",
        "from kernel_smith.inline import cpp\nbuild = cpp",
        "from kernel_smith.inline import Library\nLibrary('x')",
    ],
)
def test_other_calls_are_not_the_helper(text: str) -> None:
    assert sources(text) == []
    assert not has_kernel_call(ast.parse(text))


@pytest.mark.parametrize(
    "text",
    [
        "cpp(make_source())",
        "cpp(f'{x}')",
        "cpp('x' * 2)",
        "cpp(b'x')",
        "cpp(unknown)",
        "cpp(*sources)",
        "cpp(**arguments)",
        "cpp('x', flags=choose())",
        "cpp('x', flags=['-O2', choose()])",
        "cpp('x', flags='-O2')",
        "cpp()",
        "list(map(cpp, sources))",
        "functools.partial(cpp, flags=[])(make())",
        "self.build = cpp",
    ],
)
def test_sources_that_are_not_literal_are_left_to_run_time(text: str) -> None:
    assert sources(IMPORT + text) == []
    assert has_kernel_call(ast.parse(IMPORT + text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("S = 'x'\ncpp(S)", ["x"]),
        ("S: str = 'x'\ncpp(S)", ["x"]),
        ("S = 'x'\ndef f():\n    return cpp(S)", ["x"]),
        ("H = 'x'\nS = H + 'y' 'z'\ncpp(S + '!')", ["xyz!"]),
        ("class A:\n    S = 'x'\n    k = cpp(S)", ["x"]),
        ("class A:\n    S = 'x'\n    def f(self):\n        return cpp(self.S)", ["x"]),
        ("class A:\n    S = 'x'\nk = cpp(A.S)", ["x"]),
        ("S = 'x'\ncpp(other.S)", []),
        ("S = 'x'\nS = 'y'\ncpp(S)", []),
        ("S = 'x'\nS += 'y'\ncpp(S)", []),
        ("S = 'x'\nfor S in names:\n    cpp(S)", []),
        ("S = 'x'\ndef f(S):\n    return cpp(S)", []),
        ("S = 'x'\ndef f():\n    global S\n    S = 'y'\ncpp(S)", []),
        ("S = 'x'\ndef f():\n    S = g()\n    return cpp(S)", []),
        ("S = 'x'\nimport S\ncpp(S)", []),
        ("S = 'x'\nif (S := g()):\n    cpp(S)", []),
        ("def f():\n    S = 'x'\n    return cpp(S)", []),
        ("class A:\n    S = 'x'\n    def f(self):\n        self.S = g()\n        cpp(self.S)", []),
        ("S = S\ncpp(S)", []),
        ("A = B\nB = A\ncpp(A)", []),
    ],
)
def test_a_name_is_followed_only_if_it_is_bound_once(text: str, expected: list[str]) -> None:
    assert sources(IMPORT + text) == expected


def test_flags_are_found_too() -> None:
    text = IMPORT + "F = ['-O2', '-DN=' '4']\ncpp('a', F)\ncpp('b', flags=('-Wall',))\ncpp('c', ())"
    found = find_sources(ast.parse(text))
    assert [literal.flags for literal in found] == [("-O2", "-DN=4"), ("-Wall",), ()]


def test_lines_are_those_of_the_file() -> None:
    text = '''\
    from kernel_smith.inline import cpp

    SOURCE = r"""
    first
    """

    cpp("later", ["-O2"])
    kernels = cpp(
        SOURCE,
    )
    '''
    assert find_sources(tree_of(text)) == [
        Literal("cpp", "later", ("-O2",), first_line=7, call_line=7),
        Literal("cpp", "\nfirst\n", (), first_line=3, call_line=8),
    ]


@given(st.lists(st.text(alphabet="ab {}", max_size=5), min_size=1, max_size=6), st.integers(0, 5))
def test_each_line_of_a_raw_literal_is_where_the_mapping_says(rows: list[str], gap: int) -> None:
    literal_text = "\n".join(rows)
    text = IMPORT + "\n" * gap + f'S = r"""{literal_text} """\ncpp(S)\n'
    [literal] = find_sources(ast.parse(text))
    file_rows = text.splitlines()
    for number, row in enumerate(literal.source.split("\n")):
        assert row in file_rows[literal.first_line - 1 + number]


def test_a_joined_first_line_moves_the_start_and_other_differences_do_not() -> None:
    joined = IMPORT + 'cpp("""\\\nfirst\nsecond\n""")\n'
    assert find_sources(ast.parse(joined))[0].first_line == 3
    escaped = IMPORT + 'cpp("first\\nsecond\\nthird")\n'
    assert find_sources(ast.parse(escaped))[0].first_line == 2


def test_names_that_double_one_another_do_not_exhaust_memory() -> None:
    doubling = "".join(f"S{i} = S{i - 1} + S{i - 1}\n" for i in range(1, 60))
    assert sources(IMPORT + "S0 = 'x'\n" + doubling + "cpp(S59)") == []
    many_names = " + ".join(["S"] * 200)
    assert sources(IMPORT + f"S = 'x' + '{'y' * 10_000}'\ncpp({many_names})") == []


def test_long_concatenations_are_followed() -> None:
    text = IMPORT + "cpp(" + " + ".join(["'x'"] * 500) + ")"
    assert sources(text) == ["x" * 500]


def test_every_dialects_helper_is_found() -> None:
    source = """
from kernel_smith import inline
from kernel_smith.inline import *
a = cuda("int x;")
b = maca("int y;", ["-O2"])
c = inline.hip("int z;")
d = cpp("int w;")
"""
    tree = ast.parse(source)
    assert [(found.dialect, found.source) for found in find_sources(tree)] == [
        *(("cuda", "int x;"), ("maca", "int y;"), ("hip", "int z;"), ("cpp", "int w;")),
    ]
    assert has_kernel_call(ast.parse("from kernel_smith.inline import hip\nhip(text())"))
