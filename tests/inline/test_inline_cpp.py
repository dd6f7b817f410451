"""The helper that candidates call."""

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel_smith.inline import CompileError, Library, cpp, set_provider

DOUBLE = 'extern "C" int twice(int x) { return 2 * x; }'
CANDIDATE = '''\
from kernel_smith.inline import cpp

SOURCE = r"""
extern "C" int twice(int x) {
    return 2 * wrong;
}
"""


def load():
    return cpp(SOURCE)


load()
'''


@pytest.fixture(autouse=True)
def local_provider() -> Iterator[None]:
    yield
    set_provider(None)


def test_text_becomes_a_library() -> None:
    library = cpp(DOUBLE)
    assert isinstance(library, Library)
    assert library.twice(21) == 42


def test_flags_reach_the_compiler() -> None:
    assert cpp('extern "C" int n() { return N; }', flags=["-DN=7"]).n() == 7


def test_a_rejected_kernel_raises_with_the_lines_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "my_candidate.py"
    path.write_text(CANDIDATE)
    with pytest.raises(CompileError, match="does not compile") as caught:
        exec(compile(CANDIDATE, str(path), "exec"), {"__name__": "my_candidate"})
    assert "my_candidate.py:5:" in caught.value.log
    assert "'wrong'" in caught.value.log
    assert caught.value.log in str(caught.value)


def test_a_rejected_kernel_that_is_no_literal_keeps_its_own_lines() -> None:
    with pytest.raises(CompileError, match=r"kernel\.cpp:2:"):
        cpp("\n".join(["int first;", "int second = wrong;"]))


def test_a_provider_replaces_the_compiler(compile_path: Callable[[str], Path]) -> None:
    asked = []

    def provide(dialect: str, source: str, flags: tuple[str, ...]) -> str:
        asked.append((dialect, source, flags))
        return str(compile_path(source))

    set_provider(provide)
    assert cpp(DOUBLE, ["-O1"]).twice(4) == 8
    assert asked == [("cpp", DOUBLE, ("-O1",))]
    set_provider(None)
    assert cpp(DOUBLE).twice(5) == 10
    assert len(asked) == 1


def test_arguments_of_the_wrong_type_are_refused_at_once() -> None:
    with pytest.raises(TypeError, match="sequence of strings"):
        cpp(DOUBLE, "-O2")
    with pytest.raises(TypeError, match="text of a kernel, got bytes"):
        cpp(DOUBLE.encode())  # type: ignore[arg-type]


def test_importing_the_helper_imports_little() -> None:
    program = (
        "import sys, kernel_smith.inline\n"
        "heavy = {'torch', 'numpy', 'pydantic', 'subprocess'}\n"
        "print(sorted(heavy & set(sys.modules)))\n"
        "print(sorted(m for m in sys.modules if m.startswith('kernel_smith.')\n"
        "    and not m.startswith(('kernel_smith.inline', 'kernel_smith.errors'))))\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout == "[]\n[]\n", done.stderr
