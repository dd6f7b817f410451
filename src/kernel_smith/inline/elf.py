"""The symbols of compiled kernels, and kernels made to do nothing.

`exported_functions` and `imported_symbols` read a shared object. `neutralise` writes a copy whose
exported functions return at once: if a candidate's results stay right with it, its kernels were
decoys.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from kernel_smith.errors import MissingPrerequisite

_FUNCTION = 2  # STT_FUNC
_INDIRECT_FUNCTION = 10  # STT_GNU_IFUNC: the symbol names code that picks the function
_UNTYPED = 0  # STT_NOTYPE: what a function written in assembly often has
_CALLABLE = (_FUNCTION, _INDIRECT_FUNCTION, _UNTYPED)
_EXECUTABLE = 1  # PF_X
_INFO_OFFSET = 4  # of st_info in a 64-bit symbol
_KEPT = ("_init", "_fini")

# Code that returns at once, longest first: the first that fits into a function is used.
_RETURNS = {
    "EM_X86_64": (b"\xc3",),
    # `bti c; ret`: where indirect branches are guarded, a bare return may not be their target.
    "EM_AARCH64": (b"\x5f\x24\x03\xd5\xc0\x03\x5f\xd6", b"\xc0\x03\x5f\xd6"),
}


@dataclass(frozen=True)
class _Export:
    """A function in the dynamic symbol table, and where in the file its parts lie."""

    name: str
    size: int
    code_offset: int
    info_offset: int
    info: int


def exported_functions(path: Path) -> list[str]:
    """The functions that a shared object offers, in the order of its symbol table."""
    with _opened(path) as elf:
        return [export.name for export in _exports(elf)]


def imported_symbols(path: Path) -> set[str]:
    """The names that a shared object takes from other libraries."""
    with _opened(path) as elf:
        symbols = _symbol_table(elf).iter_symbols()
        return {symbol.name for symbol in symbols if symbol["st_shndx"] == "SHN_UNDEF"} - {""}


def neutralise(path: Path, out_path: Path) -> None:
    """Write a copy of a shared object in which every exported function returns at once."""
    content = bytearray(path.read_bytes())
    with _opened(path) as elf:
        machine = elf["e_machine"]
        if machine not in _RETURNS:
            raise MissingPrerequisite(
                f"kernels for {machine} cannot be replaced by no-ops",
                hint="evaluate on x86_64 or aarch64",
            )
        for export in _exports(elf):
            code = next((c for c in _RETURNS[machine] if len(c) <= export.size), None)
            code = code or _RETURNS[machine][-1]
            content[export.code_offset : export.code_offset + len(code)] = code
            # An indirect function becomes a plain one, or its callers would jump to what the
            # stub, taken for the code that picks the function, left in a register.
            if export.info & 0xF == _INDIRECT_FUNCTION:
                content[export.info_offset] = (export.info & 0xF0) | _FUNCTION
    out_path.write_bytes(content)


@contextmanager
def _opened(path: Path) -> Iterator[Any]:
    # Imported here because a candidate process never needs it.
    from elftools.elf.elffile import ELFFile

    with path.open("rb") as stream:
        yield ELFFile(stream)


def _symbol_table(elf: Any) -> Any:
    """The dynamic symbols: the table that the loader reads, whatever other sections are called."""
    dynamic = next(elf.iter_segments("PT_DYNAMIC"))
    _, offset = dynamic.get_table_offset("DT_SYMTAB")
    tables = [s for s in elf.iter_sections("SHT_DYNSYM") if s["sh_offset"] == offset]
    return max(tables, key=lambda section: section["sh_size"])


def _exports(elf: Any) -> Iterator[_Export]:
    table = _symbol_table(elf)
    segments = [s for s in elf.iter_segments("PT_LOAD") if s["p_flags"] & _EXECUTABLE]
    for index, symbol in enumerate(table.iter_symbols()):
        info_offset = table["sh_offset"] + index * table["sh_entsize"] + _INFO_OFFSET
        elf.stream.seek(info_offset)
        info = elf.stream.read(1)[0]
        defined = symbol["st_shndx"] not in ("SHN_UNDEF", "SHN_ABS")
        visible = symbol["st_info"]["bind"] != "STB_LOCAL" and symbol.name not in _KEPT
        code_offset = _file_offset(segments, symbol["st_value"])
        if defined and visible and info & 0xF in _CALLABLE and code_offset is not None:
            yield _Export(symbol.name, symbol["st_size"], code_offset, info_offset, info)


def _file_offset(segments: list[Any], address: int) -> int | None:
    """Where in the file the bytes of an address lie."""
    for segment in segments:
        offset = address - segment["p_vaddr"]
        if 0 <= offset < segment["p_filesz"]:
            return int(segment["p_offset"] + offset)
    return None
