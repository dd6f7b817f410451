"""What compilers print, as recorded: errors with lines, figures of kernels, and crashes."""

import signal
from pathlib import Path

import pytest
from vendor_compilers import FakeCompiler

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.inline.build import Ran, build
from kernel_smith.inline.cache import ObjectCache
from kernel_smith.inline.diagnostics import Message, parse, relocate
from kernel_smith.inline.resources import KernelResources, parse_resources

NVCC_INFO = """\
ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function '_Z5scalePKfPfl' for 'sm_90'
ptxas info    : Function properties for _Z5scalePKfPfl
    24 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads
ptxas info    : Used 11 registers, used 1 barriers, 128 bytes smem, 24 bytes cumulative stack size
ptxas info    : Compile time = 11.650 ms
ptxas info    : Compiling entry function 'plain' for 'sm_90'
ptxas info    : Function properties for plain
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Function properties for _Z6helperf
    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
kernel.cpp(3): warning #177-D: variable "y" was declared but never referenced
"""
NVCC_ERRORS = """\
kernel.cpp(2): error: identifier "nope" is undefined
  __attribute__((global)) void k(float* y) { nope(); }
                                             ^

kernel.cpp(5): warning #177-D: variable "unused" was declared but never referenced
/usr/include/c++/12/bits/stl_construct.h(119): error: no instance of constructor "S::S" matches
        ::new((void*)__p) _Tp(std::forward<_Args>(__args)...);
                             ^
kernel.cpp(3): note #3322-D: number of parameters of function "S::S(int)" does not match the call
          detected during:
            instantiation of "void std::_Construct(_Tp *)" at line 638 of /usr/include/x.h
            instantiation of "std::vector<_Tp>::vector() [with _Tp=S]" at line 4 of kernel.cpp

1 error detected in the compilation of "kernel.cpp".
"""
MACA_INFO = """\
maca info    : Compiling entry function '_Z6reducePKfPf' for 'xcore1000'
maca info : Function properties for _Z6reducePKfPf
    16 bytes stack frame, 0 bytes spill stores, 4 bytes spill loads
maca info : Used 49 MTregisters, 64 STregisters, 2048 bytes shared mem, staticMaxWarps/PEU: 10
"""
HIP_INFO = """\
kernel.cpp:3:0: remark: Function Name: _Z5scalePKfPfl [-Rpass-analysis=kernel-resource-usage]
kernel.cpp:3:0: remark:     SGPRs: 12 [-Rpass-analysis=kernel-resource-usage]
kernel.cpp:3:0: remark:     VGPRs: 40 [-Rpass-analysis=kernel-resource-usage]
kernel.cpp:3:0: remark:     AGPRs: 0 [-Rpass-analysis=kernel-resource-usage]
kernel.cpp:3:0: remark:     ScratchSize [bytes/lane]: 20 [-Rpass-analysis=kernel-resource-usage]
kernel.cpp:3:0: remark:     Occupancy [waves/SIMD]: 8 [-Rpass-analysis=kernel-resource-usage]
kernel.cpp:3:0: remark:     SGPRs Spill: 0 [-Rpass-analysis=kernel-resource-usage]
kernel.cpp:3:0: remark:     VGPRs Spill: 3 [-Rpass-analysis=kernel-resource-usage]
kernel.cpp:3:0: remark:     LDS Size [bytes/block]: 1024 [-Rpass-analysis=kernel-resource-usage]
kernel.cpp:9:5: warning: unused variable 'q' [-Wunused-variable]
remark: <unknown>:0:0: Function Name: other [-Rpass-analysis=kernel-resource-usage]
remark: <unknown>:0:0:     SGPRs: 8 [-Rpass-analysis=kernel-resource-usage]
remark: <unknown>:0:0:     VGPRs: 2 [-Rpass-analysis=kernel-resource-usage]
"""
HIP_ERRORS = """\
In file included from <built-in>:1:
kernel.cpp:4:13: error: use of undeclared identifier 'nope'
    y[0] = nope(x);
           ^
error: local memory (100000) exceeds limit (65536) in function '_Z1kPf'
lld: error: undefined hidden symbol: helper(int)
clang: error: unable to execute command: Segmentation fault (core dumped)
1 error generated when compiling for gfx90a.
"""


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("NVCC", "CUDA_HOME", "MXCC", "MACA_PATH", "HIPCC", "ROCM_PATH"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


@pytest.fixture
def cache(tmp_path: Path) -> ObjectCache:
    return ObjectCache(tmp_path / "cache")


def test_figures_of_ptxas() -> None:
    assert parse_resources("cuda", "native", NVCC_INFO) == [
        KernelResources(
            "scale(float const*, float*, long)",
            registers=11,
            spill_stores=8,
            spill_loads=12,
            shared=128,
            stack=24,
        ),
    ]
    assert parse_resources("maca", "nvidia", NVCC_INFO) == parse_resources(
        "cuda", "native", NVCC_INFO
    )


def test_figures_of_mxcc() -> None:
    assert parse_resources("maca", "native", MACA_INFO) == [
        KernelResources(
            "reduce(float const*, float*)",
            registers=49,
            scalar_registers=64,
            spill_stores=0,
            spill_loads=4,
            shared=2048,
            stack=16,
            waves=10,
        ),
    ]


def test_figures_of_hipcc() -> None:
    assert parse_resources("hip", "native", HIP_INFO) == [
        KernelResources(
            "scale(float const*, float*, long)",
            registers=40,
            scalar_registers=12,
            spill_stores=12,
            spill_loads=12,
            shared=1024,
            stack=20,
            waves=8,
        ),
        KernelResources("other", registers=2, scalar_registers=8),
    ]


def test_names_stay_as_they_are_where_nothing_can_read_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    log = MACA_INFO.replace("_Z6reducePKfPf", "_Z7another")
    assert parse_resources("maca", "native", log)[0].name == "_Z7another"


@pytest.mark.parametrize(
    "log", ["", "garbage", "Used 3 registers", "ptxas info    : Used 9 registers"]
)
def test_a_log_without_kernels_has_no_figures(log: str) -> None:
    for dialect, route in (("cuda", "native"), ("maca", "native"), ("hip", "native")):
        assert parse_resources(dialect, route, log) == []
    assert parse_resources("cuda", "cpu", NVCC_INFO) == []
    assert parse_resources("cpp", "native", NVCC_INFO) == []


@pytest.mark.parametrize(
    ("name", "dialect", "log"),
    [("nvcc", "cuda", NVCC_INFO), ("mxcc", "maca", MACA_INFO), ("hipcc", "hip", HIP_INFO)],
)
def test_a_build_has_the_figures_also_from_the_cache(
    machine: Path, cache: ObjectCache, name: str, dialect: str, log: str
) -> None:
    FakeCompiler(machine / name).replay(log)
    first = build("__global__ void k() {}", (), dialect, cache)
    again = build("__global__ void k() {}", (), dialect, cache)
    assert first.resources == tuple(parse_resources(dialect, "native", log)) != ()
    assert (again.cached, again.resources) == (True, first.resources)


def test_messages_of_nvcc_carry_the_lines_of_the_candidate() -> None:
    assert parse(NVCC_ERRORS, "kernel.cpp", first_line=11) == [
        Message(12, "error", 'identifier "nope" is undefined'),
        Message(15, "warning", 'variable "unused" was declared but never referenced'),
        Message(14, "error", 'stl_construct.h:119: no instance of constructor "S::S" matches'),
        Message(13, "note", 'number of parameters of function "S::S(int)" does not match the call'),
    ]


def test_a_log_of_nvcc_is_shown_with_the_lines_of_the_candidate() -> None:
    shown = relocate(NVCC_ERRORS, "kernel.cpp", 11, "mine.py")
    assert 'mine.py:12: error: identifier "nope" is undefined' in shown
    assert "mine.py:13: note #3322-D" in shown
    assert "at line 14 of mine.py" in shown
    assert "at line 638 of /usr/include/x.h" in shown


@pytest.mark.parametrize(
    ("row", "text"),
    [
        (
            "ptxas error   : Entry function '_Z1sPf' uses too much shared data (0x61a80 bytes)",
            "ptxas: Entry function '_Z1sPf' uses too much shared data (0x61a80 bytes)",
        ),
        ("ptxas fatal   : Unresolved extern function '_Z1fi'", None),
        ("nvcc fatal   : Unsupported gpu architecture 'sm_10'", None),
        ("nvcc error   : 'cicc' died due to signal 11 (Invalid memory reference)", None),
        ("nvlink error   : Undefined reference to '_Z1fi' in 'kernel.o'", None),
    ],
)
def test_messages_of_nvccs_programs_have_no_line(row: str, text: str | None) -> None:
    tool, _, rest = row.partition(" ")
    expected = text or f"{tool}: {rest.partition(': ')[2]}"
    assert parse(f"{NVCC_INFO}{row}\n", "kernel.cpp")[-1] == Message(None, "error", expected)


def test_messages_of_hipcc_carry_the_lines_of_the_candidate() -> None:
    assert parse(HIP_ERRORS, "kernel.cpp", first_line=3) == [
        Message(6, "error", "use of undeclared identifier 'nope'"),
        Message(None, "error", "local memory (100000) exceeds limit (65536) in function '_Z1kPf'"),
        Message(None, "error", "lld: undefined hidden symbol: helper(int)"),
        Message(
            None, "error", "clang: unable to execute command: Segmentation fault (core dumped)"
        ),
    ]


def test_remarks_are_no_errors() -> None:
    assert {message.severity for message in parse(HIP_INFO, "kernel.cpp")} <= {"note", "warning"}
    assert [message.severity for message in parse(NVCC_INFO, "kernel.cpp")] == ["warning"]


@pytest.mark.parametrize(
    ("name", "dialect", "log"), [("nvcc", "cuda", NVCC_ERRORS), ("hipcc", "hip", HIP_ERRORS)]
)
def test_a_rejected_source_has_the_compilers_log(
    machine: Path, cache: ObjectCache, name: str, dialect: str, log: str
) -> None:
    FakeCompiler(machine / name).replay(log, code=1)
    result = build("__global__ void k() { nope(); }", (), dialect, cache)
    assert result.path is None
    assert result.log.strip() == log.strip()


@pytest.mark.parametrize(("name", "dialect"), [("nvcc", "cuda"), ("mxcc", "maca")])
def test_a_compiler_that_crashes_says_so(
    machine: Path, cache: ObjectCache, name: str, dialect: str
) -> None:
    FakeCompiler(machine / name).replay("half a mess", signal=signal.SIGSEGV)
    result = build("__global__ void k() {}", (), dialect, cache)
    assert result.path is None
    assert "the compiler crashed (SIGSEGV)" in result.log
    assert parse(result.log, "kernel.cpp") == [
        Message(None, "error", f"{name}: the compiler crashed (SIGSEGV)")
    ]


def test_a_crash_is_seen_through_a_shell_too(machine: Path, cache: ObjectCache) -> None:
    FakeCompiler(machine / "nvcc")

    def run(arguments: list[str], folder: Path, timeout: float) -> Ran:
        return Ran(128 + signal.SIGABRT, "", timed_out=False)

    assert "crashed (SIGABRT)" in build("int x;", (), "cuda", cache, run=run).log


def test_a_vendors_compiler_that_builds_nothing_is_not_the_sources_fault(
    machine: Path, cache: ObjectCache
) -> None:
    compiler = machine / "nvcc"
    compiler.write_text(
        '#!/bin/sh\ncase "$*" in --version) echo release 13.0;; *) echo no cicc; exit 1;; esac\n'
    )
    compiler.chmod(0o755)
    with pytest.raises(MissingPrerequisite, match="cannot build a shared library:\nno cicc") as e:
        build("int x;", (), "cuda", cache)
    assert "CUDA toolkit" in e.value.hint
