"""Reading compiled kernels, and making them do nothing."""

import ctypes
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.inline.elf import (
    exported_functions,
    imported_symbols,
    neutralise,
    unresolved_symbols,
)
from kernel_smith.inline.library import Library
from kernel_smith.inline.signature import prototypes

SOURCE = r"""
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

template <typename T> __attribute__((noinline)) T* pass_on(T* value) { return value; }
static std::vector<float> made_at_load(3, 1.0f);
static float read_at_load = *pass_on(made_at_load.data());
static void hidden(float* y) { y[0] += read_at_load * made_at_load[1]; }

extern "C" void fill(float* y, int64_t n, float value) {
    #pragma omp parallel for
    for (int64_t i = 0; i < n; ++i) y[i] = std::exp(value);
    hidden(y);
}
extern "C" void bump(float* y) { y[0] += 1; }
extern "C" void tiny() { }
extern "C" void leave() { std::exit(3); }
extern "C" int table[4] = {1, 2, 3, 4};
"""
INDIRECT = r"""
extern "C" {
    static void implementation(float* y) { y[0] = 5; }
    void* pick() { return reinterpret_cast<void*>(implementation); }
    void chosen(float* y) __attribute__((ifunc("pick")));
    void calls_chosen(float* y) { chosen(y); }
}
"""
# A function without a type, as in assembly that was written by hand.
UNTYPED = r"""
extern "C" void bump(float* y) { y[0] += 1; }
asm(".text\n.globl untyped\n.balign 16\nuntyped:\n"
#if defined(__x86_64__)
    "jmp bump@PLT\n"
#else
    "b bump\n"
#endif
);
"""


@pytest.fixture(scope="module")
def built(compile_path: Callable[[str], Path]) -> Path:
    return compile_path(SOURCE)


def test_exported_functions_are_listed(built: Path) -> None:
    exported = exported_functions(built)
    assert {"fill", "bump", "tiny", "leave"} <= set(exported)
    assert not {"table", "hidden", "_init", "_fini", "exit"} & set(exported)


def test_imported_symbols_are_listed(built: Path) -> None:
    imported = imported_symbols(built)
    assert "exit" in imported
    assert {"GOMP_parallel", "__kmpc_fork_call"} & imported
    assert not {"fill", "table", ""} & imported


def test_imports_are_seen_in_a_library_that_exports_nothing(
    compile_path: Callable[[str], Path],
) -> None:
    source = "#include <cstdlib>\nstatic int ran = std::system(nullptr);\n"
    path = compile_path(source)
    assert exported_functions(path) == []
    assert "system" in imported_symbols(path)


def test_a_section_with_the_tables_name_hides_nothing(
    compile_path: Callable[[str], Path],
) -> None:
    source = (
        '#include <cstdlib>\nextern "C" int f() { return std::system(nullptr); }\n'
        '__attribute__((section(".dynsym"), used)) static const char fake[48] = {0};\n'
    )
    path = compile_path(source)
    assert "f" in exported_functions(path)
    assert "system" in imported_symbols(path)


def test_a_neutralised_library_does_nothing(built: Path, tmp_path: Path) -> None:
    y = torch.full((4,), -1.0)
    before = built.read_bytes()
    neutralise(built, tmp_path / "neutral.so")
    library = Library(tmp_path / "neutral.so", prototypes(SOURCE))
    library.fill(y, 4, 0.0)
    library.bump(y)
    library.tiny()
    library.leave()
    assert torch.equal(y, torch.full((4,), -1.0))
    assert built.read_bytes() == before
    Library(built, prototypes(SOURCE)).fill(y, 4, 0.0)
    assert torch.equal(y, torch.tensor([2.0, 1.0, 1.0, 1.0]))
    assert exported_functions(tmp_path / "neutral.so") == exported_functions(built)


@pytest.mark.parametrize(
    ("source", "name", "after"), [(INDIRECT, "chosen", 5.0), (UNTYPED, "untyped", 1.0)]
)
def test_functions_of_unusual_kinds_are_neutralised_too(
    compile_path: Callable[[str], Path], tmp_path: Path, source: str, name: str, after: float
) -> None:
    path = compile_path(source)
    assert name in exported_functions(path)
    y = torch.zeros(1)
    neutralise(path, tmp_path / "neutral.so")
    ctypes.CDLL(str(tmp_path / "neutral.so"))[name](ctypes.c_void_p(y.data_ptr()))
    assert y.item() == 0.0
    ctypes.CDLL(str(path))[name](ctypes.c_void_p(y.data_ptr()))
    assert y.item() == after


def test_what_follows_the_end_of_the_dynamic_entries_is_ignored(
    built: Path, tmp_path: Path
) -> None:
    """The loader stops there; a second symbol table behind it must not be taken for the first."""
    content = bytearray(built.read_bytes())
    headers, count = int.from_bytes(content[32:40], "little"), content[56]
    rows = [struct.unpack_from("<IIQQQQQQ", content, headers + 56 * i) for i in range(count)]
    dynamic = next(row for row in rows if row[0] == 2)
    entries = range(dynamic[2], dynamic[2] + dynamic[5], 16)
    spare = [at for at in entries if content[at : at + 16] == bytes(16)]
    struct.pack_into("<QQ", content, spare[1], 6, 0xDEAD)
    (tmp_path / "odd.so").write_bytes(content)
    assert imported_symbols(tmp_path / "odd.so") == imported_symbols(built)


def test_names_left_open_for_whatever_the_process_holds_are_told(
    built: Path, compile_path: Callable[[str], Path]
) -> None:
    assert unresolved_symbols(built) == set()
    open_ended = compile_path(
        'extern "C" __attribute__((weak)) void borrowed(float*);\n'
        'extern "C" void bump(float* y) { if (borrowed) borrowed(y); }\n'
    )
    assert unresolved_symbols(open_ended) == {"borrowed"}


@pytest.mark.parametrize("length", [0, 10, 63, 64, 200])
def test_a_file_that_is_no_shared_object_is_bad_input(
    built: Path, tmp_path: Path, length: int
) -> None:
    (tmp_path / "torn.so").write_bytes(built.read_bytes()[:length])
    with pytest.raises(BadInput, match=r"torn\.so"):
        imported_symbols(tmp_path / "torn.so")


def test_other_machines_are_refused(built: Path, tmp_path: Path) -> None:
    content = bytearray(built.read_bytes())
    content[18:20] = (243).to_bytes(2, "little")  # e_machine: RISC-V
    foreign = tmp_path / "foreign.so"
    foreign.write_bytes(content)
    with pytest.raises(MissingPrerequisite, match="machine 243"):
        neutralise(foreign, tmp_path / "neutral.so")
    assert not (tmp_path / "neutral.so").exists()
