"""Compiler messages in the lines of the candidate."""

import ast
import textwrap

import pytest

from kernel_smith.inline.build import build
from kernel_smith.inline.cache import ObjectCache
from kernel_smith.inline.diagnostics import Message, parse, relocate
from kernel_smith.inline.literals import find_sources

CLANG_LOG = """\
In file included from kernel.cpp:1:
/usr/include/c++/12/vector:64:3: error: no member named 'x'
kernel.cpp:3:12: warning: unused variable 'y' [-Wunused-variable]
    3 |        int y;
kernel.cpp:4:5: fatal error: too many errors emitted
ld: error: undefined symbol: helper(int)
>>> referenced by kernel.cpp
clang: error: linker command failed with exit code 1 (use -v to see invocation)
"""

STYLES = {
    "raw": '''
        from kernel_smith.inline import cpp

        SOURCE = r"""
        #include <cstdint>
        extern "C" int f(int x) {
            return x + BROKEN;
        }
        """
        lib = cpp(SOURCE)
    ''',
    "first line joined": '''
        from kernel_smith.inline import cpp
        lib = cpp(
            """\\
        extern "C" int f(int x) {
            return x + BROKEN;
        }
        """
        )
    ''',
    "one string per line": """
        from kernel_smith.inline import cpp
        lib = cpp(
            'extern "C" int f(int x) {\\n'
            "    int y = x;\\n"
            "    return x + BROKEN;\\n"
            "}\\n"
        )
    """,
    "in a class": '''
        import kernel_smith.inline as inline
        class ModelNew:
            SOURCE = """
        extern "C" int f(int x) {
            return x + BROKEN; }"""
            lib = inline.cpp(SOURCE)
    ''',
    "joined to another": '''
        from kernel_smith.inline import cpp
        HEAD = r"""
        extern "C" int f(int x) {
            return x + BROKEN;
        """
        TAIL = "}"
        lib = cpp(HEAD + TAIL)
    ''',
}


@pytest.mark.parametrize("style", STYLES)
def test_a_real_error_carries_the_candidates_line(style: str, shared_cache: ObjectCache) -> None:
    candidate = textwrap.dedent(STYLES[style])
    rows = candidate.splitlines()
    broken = next(number for number, row in enumerate(rows, start=1) if "BROKEN" in row)
    [literal] = find_sources(ast.parse(candidate))
    log = build(literal.source, cache=shared_cache).log
    errors = [m for m in parse(log, "kernel.cpp", literal.first_line) if m.severity == "error"]
    assert [error.line for error in errors] == [broken]
    assert "BROKEN" in errors[0].text
    moved = relocate(log, "kernel.cpp", literal.first_line, "candidate.py")
    assert f"candidate.py:{broken}:" in moved
    assert "kernel.cpp" not in moved
    assert "\x1b" not in moved


def test_an_undefined_reference_is_an_error_without_a_line(shared_cache: ObjectCache) -> None:
    result = build(
        'int helper(int);\nextern "C" int f(int x) { return helper(x); }', cache=shared_cache
    )
    assert result.path is None
    [message] = parse(result.log, "kernel.cpp", 10)
    assert message.line is None
    assert message.severity == "error"
    assert message.text.startswith("undefined reference to")
    assert "helper(int)" in message.text


def test_warnings_and_notes_keep_their_severity(shared_cache: ObjectCache) -> None:
    source = 'extern "C" int f(int x) {\n    int unused;\n    return x;\n}\n#pragma message("hi")\n'
    result = build(source, ["-Wall"], cache=shared_cache)
    assert result.path is not None
    found = {(m.line, m.severity) for m in parse(result.log, "kernel.cpp", first_line=5)}
    assert (6, "warning") in found
    assert (9, "note") in found or (9, "warning") in found


def test_an_error_in_a_header_points_to_the_line_that_asked_for_it(
    shared_cache: ObjectCache,
) -> None:
    source = "#include <vector>\nstruct S;\nvoid f() {\n    std::vector<S> v(3);\n}\n"
    messages = parse(build(source, cache=shared_cache).log, "kernel.cpp", first_line=100)
    header_errors = [m for m in messages if m.severity == "error" and ".h:" in m.text]
    assert header_errors
    assert {m.line for m in header_errors} <= {103, None}


def test_messages_of_clang_and_its_linker_are_understood() -> None:
    assert parse(CLANG_LOG, "kernel.cpp", first_line=11) == [
        Message(None, "error", "vector:64: no member named 'x'"),
        Message(13, "warning", "unused variable 'y' [-Wunused-variable]"),
        Message(14, "error", "too many errors emitted"),
        Message(None, "error", "undefined symbol: helper(int)"),
    ]


@pytest.mark.parametrize(
    ("row", "text"),
    [
        ("g++: fatal error: Killed signal terminated program cc1plus", "Killed signal"),
        ("cc1plus: out of memory allocating 65536 bytes after a total of 1 bytes", "out of memory"),
        ("virtual memory exhausted: Cannot allocate memory", "virtual memory exhausted"),
        ("/usr/bin/g++-12: error: unrecognized command-line option '-fx'", "unrecognized"),
    ],
)
def test_messages_of_the_driver_have_no_line(row: str, text: str) -> None:
    [message] = parse(row, "kernel.cpp")
    assert message.line is None
    assert message.severity == "error"
    assert text in message.text


def test_only_the_kernels_own_name_is_rewritten() -> None:
    log = (
        "kernel.cpp: In function 'f':\n"
        "                 from kernel.cpp:2:\n"
        "other/kernel.cpp:2:1: error: x\n"
        "my_kernel.cpp:2:1: error: x\n"
        "kernel.cpp:(.text+0x4): undefined reference\n"
    )
    assert relocate(log, "kernel.cpp", 41, "candidate.py") == (
        "candidate.py: In function 'f':\n"
        "                 from candidate.py:42:\n"
        "other/kernel.cpp:2:1: error: x\n"
        "my_kernel.cpp:2:1: error: x\n"
        "candidate.py:(.text+0x4): undefined reference\n"
    )
