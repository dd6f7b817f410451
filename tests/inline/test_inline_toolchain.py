"""Finding a compiler, and which flags a candidate may use."""

from pathlib import Path

import pytest

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.inline.toolchain import Toolchain, check_flags, command, find_toolchain


def script(path: Path, text: str) -> Path:
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)
    return path


def test_a_compiler_on_the_path_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CXX", raising=False)
    toolchain = find_toolchain("cpp")
    assert toolchain.compiler.name in ("g++", "clang++")
    assert toolchain.version
    assert toolchain is find_toolchain("cpp")


def test_the_first_of_the_known_compilers_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    clang = script(tmp_path / "clang++", "echo clang version 99")
    assert find_toolchain().compiler == clang
    gcc = script(tmp_path / "g++", "echo g++ 99")
    assert find_toolchain() == Toolchain(
        "cpp",
        gcc,
        "g++ 99",
        (
            str(gcc),
            *("-std=c++17", "-O3", "-fopenmp", "-fno-math-errno", "-fno-trapping-math"),
            *("-shared", "-fPIC", "-fdiagnostics-color=never"),
            *("-march=native", "-fno-diagnostics-show-line-numbers"),
        ),
    )


def test_cxx_wins_and_may_carry_arguments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wrapper = script(tmp_path / "wrapper", 'exec "$@"')
    real = find_toolchain().compiler
    monkeypatch.setenv("CXX", f"{wrapper} {real}")
    toolchain = find_toolchain()
    assert toolchain.compiler == wrapper
    assert toolchain.command_prefix[:2] == (str(wrapper), str(real))


def test_arguments_that_the_compiler_does_not_know_are_replaced_or_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    picky = script(
        tmp_path / "picky",
        'case "$*" in *--version*) echo picky 1;; *-march=*|*-fno-diagnostics*) exit 1;; esac',
    )
    monkeypatch.setenv("CXX", str(picky))
    prefix = find_toolchain().command_prefix
    assert prefix[-1] == "-mcpu=native"
    assert "-march=native" not in prefix
    assert "-fno-diagnostics-show-line-numbers" not in prefix


def test_a_compiler_that_cxx_names_must_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "/nonexistent/compiler")
    with pytest.raises(MissingPrerequisite, match=r"\$CXX .*/nonexistent/compiler") as caught:
        find_toolchain()
    assert "unset CXX" in caught.value.hint
    assert "apt-get install g++" in caught.value.hint


def test_without_any_compiler_the_remedy_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    for path in ("", str(tmp_path)):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(MissingPrerequisite, match=r"\$CXX .* g\+\+ and clang\+\+") as caught:
            find_toolchain()
        assert "apt-get install g++" in caught.value.hint


def test_a_program_that_is_no_compiler_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", str(script(tmp_path / "broken", "echo no licence >&2; exit 1")))
    with pytest.raises(MissingPrerequisite, match="no licence"):
        find_toolchain()


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(BadInput, match="fortran") as caught:
        find_toolchain("fortran")
    assert "cpp" in caught.value.hint


@pytest.mark.parametrize(
    "flag",
    [
        *("-O2", "-Ofast", "-O", "-ffast-math", "-funroll-loops", "-fno-math-errno", "-flto"),
        *("-fmodulo-sched", "-fprefetch-loop-arrays", "-ffp-contract=fast", "-fno-openmp"),
        *("-march=armv8-a+simd", "-mavx2", "-mprefer-vector-width=512", "-std=c++20", "-Wall"),
        *("-Wno-unused-variable", "-DN=4", "-DNAME", '-DTEXT="a b"', "-DF(x)=(x)*2"),
    ],
)
def test_flags_that_shape_code_are_allowed(flag: str) -> None:
    assert check_flags([flag]) == (flag,)


@pytest.mark.parametrize(
    "flag",
    [
        *("", "-", "-f", "-m", "-W", "-D", "O3", "-std", "kernel.cpp", "@file", "-I.", "-lm"),
        *("-include", "-includex.h", "-o", "-B.", "-specs=x", "-x", "-c", "-S", "-E", "-pipe"),
        *("-fplugin=x.so", "-fplugin-arg-x-y", "-fpass-plugin=x.so", "-fdump-tree-all", "-wrapper"),
        *("-fprofile-use", "-fprofile-generate", "-fauto-profile", "-fuse-ld=gold", "-Wl,-z,now"),
        *("-Wa,-a=out", "-Wp,-MD,out", "-ffile-prefix-map=a=b", "-fdebug-prefix-map=a=b"),
        *("-fmodule-mapper=x", "-fmodules-ts", "-fsave-optimization-record", "-fstack-usage"),
        *("-fopt-info-vec=out", "-fdiagnostics-format=json", "-fdiagnostics-color=always"),
        *(
            "-mllvm",
            "-DPATH=/etc/passwd",
            "-DX=@file",
            "-fsanitize-blacklist=x",
            "-DX\n",
            "-O2 -I.",
        ),
        *(
            "-ftime-trace",
            "-fcrash-diagnostics-dir=x",
            "-fprebuilt-module-path=x",
            "-fmacro-prefix-map",
        ),
    ],
)
def test_flags_that_reach_beyond_the_kernel_are_refused(flag: str) -> None:
    with pytest.raises(BadInput, match="flag not allowed") as caught:
        check_flags(["-O2", flag])
    assert "-O, -f, -m, -D, -std= or -W" in caught.value.hint


def test_flags_come_after_our_own_arguments() -> None:
    toolchain = find_toolchain()
    words = command(toolchain, Path("kernel.cpp"), Path("kernel.so"), ["-O1"])
    assert words.index("-O1") > words.index("-O3")
    assert words[words.index("-o") + 1] == "kernel.so"
    with pytest.raises(BadInput):
        command(toolchain, Path("kernel.cpp"), Path("kernel.so"), ["-fplugin=x.so"])
