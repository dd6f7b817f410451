"""Compiling one source, within limits."""

import subprocess
import sys
import tempfile
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.inline import build as build_module
from kernel_smith.inline.build import OUTPUT_LIMIT, Ran, build, run_compiler
from kernel_smith.inline.cache import ObjectCache
from kernel_smith.inline.library import Library
from kernel_smith.inline.signature import prototypes

ADD = '#include <cstdint>\nextern "C" int64_t add(int64_t a, int64_t b) { return a + b + BIAS; }\n'
# Each instance needs two more of the next depth: more than any machine can finish.
BOMB = """
template <int N, unsigned long M> struct Tree {
    static constexpr unsigned long value =
        Tree<N - 1, 2 * M>::value + Tree<N - 1, 2 * M + 1>::value;
};
template <unsigned long M> struct Tree<0, M> { static constexpr unsigned long value = M; };
extern "C" unsigned long explode() { return Tree<60, 1>::value; }
"""


@pytest.fixture
def cache(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "cache")


@pytest.fixture
def build_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "builds"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    return folder


def test_a_source_becomes_a_library_and_then_comes_from_the_cache(
    cache: ObjectCache, build_folder: Path
) -> None:
    first = build(ADD, ["-DBIAS=0"], cache=cache)
    assert first.path is not None
    assert not first.cached
    second = build(ADD, ["-DBIAS=0"], cache=cache)
    assert second.cached
    assert second.path == first.path
    other = build(ADD, ["-DBIAS=100"], cache=cache)
    assert not other.cached
    assert Library(first.path, prototypes(ADD)).add(2, 3) == 5
    assert other.path is not None
    assert Library(other.path, prototypes(ADD)).add(2, 3) == 105
    assert list(build_folder.iterdir()) == []


def test_a_corrupted_library_is_compiled_again(cache: ObjectCache) -> None:
    first = build(ADD, ["-DBIAS=0"], cache=cache)
    assert first.path is not None
    intact = first.path.read_bytes()
    first.path.chmod(0o644)
    first.path.write_bytes(b"garbage")
    again = build(ADD, ["-DBIAS=0"], cache=cache)
    assert not again.cached
    assert again.path is not None
    assert again.path.read_bytes() == intact


def test_without_a_cache_the_users_is_taken(own_user_cache: Path) -> None:
    result = build(ADD, ["-DBIAS=0"])
    assert result.path is not None
    assert result.path.is_relative_to(own_user_cache / "objects")


def test_a_rejected_source_gives_a_log_that_does_not_vary(
    cache: ObjectCache, build_folder: Path
) -> None:
    source = 'int missing(int);\nextern "C" int f(int x) { return missing(x); }\n'
    results = [build(source, cache=cache) for _ in range(2)]
    assert [result.path for result in results] == [None, None]
    assert results[0].log == results[1].log
    assert "missing" in results[0].log
    assert str(build_folder) not in results[0].log
    assert not results[0].timed_out
    assert list(build_folder.iterdir()) == []


def test_refused_flags_never_reach_the_compiler(cache: ObjectCache) -> None:
    def must_not_run(arguments: list[str], folder: Path, timeout: float) -> Ran:
        raise AssertionError(arguments)

    with pytest.raises(BadInput):
        build(ADD, ["-fplugin=evil.so"], cache=cache, run=must_not_run)


@pytest.mark.slow
def test_a_compile_bomb_times_out_and_leaves_nothing_behind(
    cache: ObjectCache, build_folder: Path, processes_with: Callable[[str], list[str]]
) -> None:
    mark = f"-DBOMB_{uuid.uuid4().hex}"
    seen: list[str] = []

    def watch(arguments: list[str], folder: Path, timeout: float) -> Ran:
        done = threading.Event()

        def look() -> None:
            while not seen and not done.wait(0.02):
                seen.extend(processes_with(mark))

        watcher = threading.Thread(target=look)
        watcher.start()
        try:
            return run_compiler(arguments, folder, timeout)
        finally:
            done.set()
            watcher.join()

    result = build(BOMB, [mark], cache=cache, timeout=3.0, run=watch)
    assert result.timed_out
    assert result.path is None
    assert seen
    assert processes_with(mark) == []
    assert list(build_folder.iterdir()) == []


def test_memory_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "MEMORY_LIMIT", 512 << 20)
    program = "try: bytearray(1 << 30)\nexcept MemoryError: print('refused')"
    ran = run_compiler([sys.executable, "-c", program], tmp_path, 60.0)
    assert ran.output == "refused\n"


def test_files_are_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build_module, "FILE_LIMIT", 1 << 20)
    ran = run_compiler(["/bin/sh", "-c", "head -c 5000000 /dev/zero > big"], tmp_path, 60.0)
    assert ran.returncode != 0
    assert (tmp_path / "big").stat().st_size < 5_000_000


def test_endless_output_is_cut_and_does_not_block(cache: ObjectCache) -> None:
    def chatter(arguments: list[str], folder: Path, timeout: float) -> Ran:
        return run_compiler(["/bin/sh", "-c", "yes | head -c 5000000; exit 1"], folder, timeout)

    result = build(ADD, ["-DBIAS=0"], cache=cache, run=chatter)
    assert result.log.startswith("y\ny\n")
    assert OUTPUT_LIMIT < len(result.log) < OUTPUT_LIMIT + 100
    assert "was cut" in result.log
    assert not result.timed_out


def test_a_process_that_closed_its_output_is_still_waited_for(tmp_path: Path) -> None:
    ran = run_compiler(["/bin/sh", "-c", "exec >&- 2>&-; sleep 60"], tmp_path, 0.5)
    assert ran.timed_out


def test_another_way_to_run_the_compiler_can_be_given(cache: ObjectCache) -> None:
    commands = []

    def run(arguments: list[str], folder: Path, timeout: float) -> Ran:
        commands.append((arguments, timeout))
        done = subprocess.run(arguments, cwd=folder, capture_output=True, text=True)
        return Ran(done.returncode, done.stderr, timed_out=False)

    result = build(ADD, ["-DBIAS=1"], cache=cache, timeout=7.0, run=run)
    assert result.path is not None
    [(arguments, timeout)] = commands
    assert "-DBIAS=1" in arguments
    assert timeout == 7.0


def test_a_compiler_that_cannot_build_anything_is_not_the_sources_fault(
    tmp_path: Path, cache: ObjectCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    half = tmp_path / "half-installed"
    half.write_text(
        '#!/bin/sh\ncase "$*" in *--version*) echo 1.0;; *-E*) ;; *) echo no omp; exit 1;; esac\n'
    )
    half.chmod(0o755)
    monkeypatch.setenv("CXX", str(half))
    with pytest.raises(MissingPrerequisite, match="no omp") as caught:
        build(ADD, ["-DBIAS=0"], cache=cache)
    assert "apt-get install g++" in caught.value.hint
