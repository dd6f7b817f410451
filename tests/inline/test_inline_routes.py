"""Finding the vendors' compilers, and the command lines that they get."""

import dataclasses
import os
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest
from vendor_compilers import FakeCompiler

from kernel_smith import inline
from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.inline import gpu, toolchain
from kernel_smith.inline.build import Ran, build
from kernel_smith.inline.cache import ObjectCache, object_key
from kernel_smith.inline.dialects import COMPAT
from kernel_smith.inline.toolchain import find_toolchain

VARIABLES = ("NVCC", "CUDA_HOME", "CUDA_PATH", "MXCC", "MACA_PATH", "HIPCC", "ROCM_PATH")
KERNEL = "__global__ void k() {}"


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine without any vendor's software; the folder is its PATH."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "cache")


def test_nvcc_gets_its_command_line(bare_machine: Path, cache: ObjectCache) -> None:
    nvcc = FakeCompiler(bare_machine / "nvcc")
    result = build(KERNEL, ["-O2", "--use_fast_math", "-DN=4"], "cuda", cache)
    assert result.path is not None
    assert nvcc.calls == [
        [
            *("-x", "cu", "-std=c++17", "-O3", "-shared", "-cudart", "shared", "-arch=sm_90"),
            *("--extended-lambda", "--expt-relaxed-constexpr", "-Xptxas", "-v"),
            *("-Xcompiler", "-fPIC,-fdiagnostics-color=never"),
            *("-O2", "--use_fast_math", "-DN=4", "kernel.cpp", "-o", "kernel.so"),
            *("-Xlinker", "-z,defs", "-Xlinker", "-z,noexecstack"),
        ]
    ]


def test_mxcc_gets_its_command_line(
    tmp_path: Path, cache: ObjectCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "maca"
    mxcc = FakeCompiler(home / "mxgpu_llvm" / "bin" / "mxcc")
    monkeypatch.setenv("MACA_PATH", str(home))
    assert build(KERNEL, ["-ffast-math"], "maca", cache, arch="xcore1500").path is not None
    assert mxcc.calls == [
        [
            *("-x", "maca", "-std=c++17", "-O3", "-shared", "-fPIC", "--offload-arch=xcore1500"),
            *(f"--maca-path={home}", "-resource-usage", "-fdiagnostics-color=never"),
            *("-ffast-math", "kernel.cpp", "-o", "kernel.so"),
            *("-Wl,-z,defs", "-Wl,-z,noexecstack"),
        ]
    ]


def test_without_mxcc_its_look_alike_of_nvcc_is_taken(
    bare_machine: Path, cache: ObjectCache
) -> None:
    cucc = FakeCompiler(bare_machine / "cucc")
    assert build(KERNEL, (), "maca", cache).path is not None
    assert cucc.calls[0][:2] == ["-x", "cu"]
    assert "--offload-arch=xcore1000" not in cucc.calls[0]
    FakeCompiler(bare_machine / "mxcc")
    assert find_toolchain("maca").compiler.name == "mxcc"


def test_hipcc_gets_its_command_line(bare_machine: Path, cache: ObjectCache) -> None:
    hipcc = FakeCompiler(bare_machine / "hipcc")
    assert build(KERNEL, (), "hip", cache).path is not None
    assert hipcc.calls == [
        [
            *("-x", "hip", "-std=c++17", "-O3", "-shared", "-fPIC", "--offload-arch=gfx90a"),
            *("-Rpass-analysis=kernel-resource-usage", "-fdiagnostics-color=never"),
            *("kernel.cpp", "-o", "kernel.so", "-Wl,-z,defs", "-Wl,-z,noexecstack"),
        ]
    ]


@pytest.mark.parametrize(
    ("dialect", "header"), [("maca", "mc_runtime.h"), ("hip", "hip/hip_runtime.h")]
)
def test_on_the_route_nvidia_nvcc_reads_our_headers(
    bare_machine: Path, cache: ObjectCache, dialect: str, header: str
) -> None:
    nvcc = FakeCompiler(bare_machine / "nvcc")
    flags = ["-ffast-math", "-O1", "-DN=4", "-std=c++20", "-munsafe-fp-atomics"]
    assert build(KERNEL, flags, dialect, cache, route="nvidia").path is not None
    [words] = nvcc.calls
    assert words[words.index("-I") + 1] == str(COMPAT / dialect)
    assert words[words.index("-include") + 1] == header
    assert (COMPAT / dialect / header).is_file()
    # Another compiler gets what decides the meaning, and nothing of another compiler's.
    assert words[words.index(header) + 1 : words.index("kernel.cpp")] == ["-DN=4", "-std=c++20"]


@pytest.mark.parametrize(
    ("dialect", "variable", "folder", "name"),
    [
        ("cuda", "CUDA_HOME", "bin", "nvcc"),
        ("cuda", "CUDA_PATH", "bin", "nvcc"),
        ("maca", "MACA_PATH", "mxgpu_llvm/bin", "mxcc"),
        ("maca", "MACA_PATH", "tools/cu-bridge/bin", "cucc"),
        ("hip", "ROCM_PATH", "bin", "hipcc"),
    ],
)
def test_a_compiler_is_found_where_its_vendor_puts_it(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    dialect: str,
    variable: str,
    folder: str,
    name: str,
) -> None:
    compiler = FakeCompiler(tmp_path / "vendor" / folder / name)
    monkeypatch.setenv(variable, str(tmp_path / "vendor"))
    assert find_toolchain(dialect).compiler == compiler.path


@pytest.mark.parametrize(
    ("dialect", "route", "variable", "remedy"),
    [
        ("cuda", "native", "NVCC", "CUDA toolkit.*CUDA_HOME"),
        ("maca", "native", "MXCC", "MACA SDK.*MACA_PATH"),
        ("hip", "native", "HIPCC", "apt-get install hipcc.*ROCM_PATH"),
        ("maca", "nvidia", "NVCC", "CUDA toolkit.*CUDA_HOME"),
        ("hip", "nvidia", "NVCC", "CUDA toolkit.*CUDA_HOME"),
        ("hip", "cpu", "CXX", r"apt-get install g\+\+"),
    ],
)
def test_what_is_missing_is_named_with_its_remedy(
    monkeypatch: pytest.MonkeyPatch, dialect: str, route: str, variable: str, remedy: str
) -> None:
    monkeypatch.delenv("CXX", raising=False)
    # On the machine that runs this, a vendor's software may lie in its usual place.
    monkeypatch.setattr(toolchain.shutil, "which", lambda name, path=None: None, raising=True)
    with pytest.raises(
        MissingPrerequisite, match=rf"no {dialect} compiler.*\${variable}"
    ) as caught:
        find_toolchain(dialect, route)
    assert (f"'{route}'" in caught.value.what) == (route != "native")
    assert re.search(remedy, caught.value.hint)
    monkeypatch.setenv(variable, "/nonexistent/compiler")
    with pytest.raises(MissingPrerequisite, match=r"names a compiler .*/nonexistent/") as caught:
        find_toolchain(dialect, route)
    assert f"unset {variable}" in caught.value.hint
    assert re.search(remedy, caught.value.hint)


@pytest.mark.parametrize("answer", ["", "garbage", "\x1b[31m???\nusage: nvcc"])
def test_a_program_that_names_no_version_is_refused(bare_machine: Path, answer: str) -> None:
    for name, dialect in (("nvcc", "cuda"), ("mxcc", "maca"), ("hipcc", "hip")):
        FakeCompiler(bare_machine / name, version=answer)
        with pytest.raises(MissingPrerequisite, match=f"{name} --version"):
            find_toolchain(dialect)


def test_versions_are_the_lines_that_name_them(bare_machine: Path) -> None:
    for name in ("nvcc", "mxcc", "hipcc"):
        FakeCompiler(bare_machine / name)
    assert find_toolchain("cuda").version == "Cuda compilation tools, release 13.0, V13.0.88"
    assert find_toolchain("maca").version.startswith("mxcc version 1.0.0")
    assert find_toolchain("hip").version == (
        "HIP version: 5.2.21153-0; Debian clang version 15.0.6"
    )


def test_routes_and_architectures_that_do_not_exist_are_refused(bare_machine: Path) -> None:
    for name in ("nvcc", "mxcc", "hipcc"):
        FakeCompiler(bare_machine / name)
    for dialect, route in (("cpp", "cpu"), ("cuda", "nvidia"), ("maca", "amd")):
        with pytest.raises(BadInput, match=f"{dialect} has no route '{route}'") as caught:
            find_toolchain(dialect, route)
        assert "native" in caught.value.hint
    for dialect, arch in (("cuda", "gfx90a"), ("hip", "gfx90a -I/"), ("maca", ""), ("cuda", "90")):
        with pytest.raises(BadInput, match="no architecture of"):
            find_toolchain(dialect, arch=arch)
    assert find_toolchain("cuda", arch="sm_90a").arch == "sm_90a"
    assert "--offload-arch=gfx942" in find_toolchain("hip", arch="gfx942").command_prefix


@pytest.mark.parametrize(
    ("visible", "answer", "expected"),
    [
        (None, "9.0", "sm_90"),
        ("2,0", "12.0", "sm_120"),
        ("GPU-1234-ab", "8.9", "sm_89"),
        ("", "9.0", None),
        ("-1", "9.0", None),
        ("0", "No devices were found", None),
    ],
)
def test_the_architecture_is_that_of_the_gpu_that_cuda_would_use(
    bare_machine: Path,
    monkeypatch: pytest.MonkeyPatch,
    visible: str | None,
    answer: str,
    expected: str | None,
) -> None:
    asked = bare_machine / "asked"
    tool = bare_machine / "nvidia-smi"
    tool.write_text(f'#!/bin/sh\necho "$2" > {asked}\necho "{answer}"\n')
    tool.chmod(0o755)
    gpu._architecture_of.cache_clear()
    if visible is None:
        monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    else:
        monkeypatch.setenv("CUDA_VISIBLE_DEVICES", visible)
    assert gpu.visible_architecture() == expected
    if expected:
        assert asked.read_text().strip() == (visible or "0").split(",")[0]
        FakeCompiler(bare_machine / "nvcc")
        FakeCompiler(bare_machine / "hipcc")
        assert find_toolchain("cuda").arch == find_toolchain("maca", "nvidia").arch == expected
        assert find_toolchain("hip").arch == "gfx90a"
    gpu._architecture_of.cache_clear()


def test_without_the_drivers_tool_there_is_no_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES")
    gpu._architecture_of.cache_clear()
    assert gpu.visible_architecture() is None
    gpu._architecture_of.cache_clear()


def test_a_library_is_kept_by_route_architecture_and_headers(
    bare_machine: Path, cache: ObjectCache
) -> None:
    nvcc = FakeCompiler(bare_machine / "nvcc")
    FakeCompiler(bare_machine / "hipcc")
    ways = [("hip", "nvidia", None), ("maca", "nvidia", None), ("hip", "native", None)]
    ways += [("cuda", "native", None), ("cuda", "native", "sm_80")]
    FakeCompiler(bare_machine / "mxcc")
    chains = [find_toolchain(*way) for way in ways]
    changed = dataclasses.replace(chains[0], headers="another")
    keys = {object_key(chain, KERNEL, ()) for chain in [*chains, changed]}
    assert len(keys) == len(ways) + 1
    assert chains[0].headers
    assert chains[2].headers == ""
    assert not build(KERNEL, (), "hip", cache, route="nvidia").cached
    assert build(KERNEL, (), "hip", cache, route="nvidia").cached
    assert len(nvcc.calls) == 1


def test_headers_are_told_apart_by_what_is_in_them(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x.h").write_text("one")
    first = toolchain._digest.__wrapped__((tmp_path / "a",))
    (tmp_path / "a" / "x.h").write_text("two")
    second = toolchain._digest.__wrapped__((tmp_path / "a",))
    (tmp_path / "a" / "x.h").rename(tmp_path / "a" / "y.h")
    third = toolchain._digest.__wrapped__((tmp_path / "a",))
    assert len({first, second, third}) == 3


def test_on_the_route_cpu_the_source_is_rewritten_for_the_cpp_compiler(
    bare_machine: Path, cache: ObjectCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    simt = ModuleType("kernel_smith.inline.simt")
    simt.__file__ = str(bare_machine / "__init__.py")
    monkeypatch.setattr(simt, "rewrite", lambda source: f"/* rewritten */ {source}", raising=False)
    monkeypatch.setattr(
        simt, "compiler_arguments", lambda dialect: [f"-DKS_{dialect}"], raising=False
    )
    monkeypatch.setitem(sys.modules, "kernel_smith.inline.simt", simt)
    monkeypatch.setattr(inline, "simt", simt, raising=False)
    monkeypatch.setenv("PATH", os.defpath)
    seen = []

    def run(arguments: list[str], folder: Path, timeout: float) -> Ran:
        seen.append((arguments, (folder / "kernel.cpp").read_text()))
        (folder / "kernel.so").write_text("a library")
        return Ran(0, "", timed_out=False)

    flags = ["--use_fast_math", "-DN=4", "--std=c++20", "-maxrregcount=32"]
    result = build("int x;", flags, "cuda", cache, run=run, route="cpu")
    assert result.path is not None
    [(arguments, text)] = seen
    assert text == "/* rewritten */ int x;"
    assert "-fopenmp" in arguments
    given = arguments[: arguments.index("kernel.cpp")]
    assert [word for word in given if word.startswith(("-D", "-std", "--"))] == [
        *("-std=c++17", "-DKS_cuda", "-DN=4", "-std=c++20"),
    ]
