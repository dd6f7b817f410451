"""The symbols of compiled kernels, and kernels made to do nothing.

`exported_functions` and `imported_symbols` read a shared object. `neutralise` writes a copy whose
exported functions return at once, or at least launch nothing: if a candidate's results stay right
with it, its kernels were decoys. The few tables of the (64-bit, little-endian) format that this
takes are read here; the libraries for it are made for inspection and need 20 times as long, for
every candidate.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple

from kernel_smith.errors import BadInput, MissingPrerequisite

_HEADER = struct.Struct("<6s10xHHIQQQIHHHHHH")
_SEGMENT = struct.Struct("<IIQQQQQQ")
_SECTION = struct.Struct("<IIQQQQIIQQ")
_DYNAMIC = struct.Struct("<QQ")
_SYMBOL = struct.Struct("<IBBHQQ")
_INFO_OFFSET = 4  # of st_info in a symbol
_NAME_SIZE = 4  # of st_name, at its beginning

_ELF64_LITTLE_ENDIAN = b"\x7fELF\x02\x01"
_LOAD, _DYNAMIC_SEGMENT = 1, 2  # PT_LOAD, PT_DYNAMIC
_END_TAG, _STRINGS_TAG, _SYMBOLS_TAG = 0, 5, 6  # DT_NULL, DT_STRTAB, DT_SYMTAB
_DYNAMIC_SYMBOLS = 11  # SHT_DYNSYM
_UNDEFINED, _ABSOLUTE = 0, 0xFFF1  # SHN_UNDEF, SHN_ABS
_LOCAL, _WEAK = 0, 2  # STB_LOCAL, STB_WEAK
_FUNCTION = 2  # STT_FUNC
_INDIRECT_FUNCTION = 10  # STT_GNU_IFUNC: the symbol names code that picks the function
_UNTYPED = 0  # STT_NOTYPE: what a function written in assembly often has
_CALLABLE = (_FUNCTION, _INDIRECT_FUNCTION, _UNTYPED)
_EXECUTABLE = 1  # PF_X
# What the loader and Python call by name, and what launches are turned into.
_KEPT = re.compile(rb"_init|_fini|PyInit_\w+|kernel_smith_no_launch")
_NO_LAUNCH = b"kernel_smith_no_launch"
_LAUNCH = re.compile(rb"(__)?cuda(Graph)?Launch\w*")
_CPP_PREFIX = b"_Z"
# What compilers leave open: profiling, calls of what has no body, transactional memory, and threads
# where libc has none.
_USUALLY_OPEN = (
    *("__gmon_start__", "__cxa_finalize", "__cxa_pure_virtual"),
    *("_ITM_", "_ZGTt", "pthread_", "__pthread_"),
)

# Code that returns at once, longest first: the first that fits into a function is used.
_RETURNS = {
    62: (b"\xc3",),  # EM_X86_64
    # EM_AARCH64, `bti c; ret`: where indirect branches are guarded, a bare return may not be their
    # target.
    183: (b"\x5f\x24\x03\xd5\xc0\x03\x5f\xd6", b"\xc0\x03\x5f\xd6"),
}


class _Segment(NamedTuple):
    kind: int
    flags: int
    offset: int
    address: int
    physical: int
    file_size: int
    memory_size: int
    alignment: int


@dataclass(frozen=True)
class _Symbol:
    """An entry of the dynamic symbol table, and where in the file its information lies."""

    name: bytes
    info: int
    section: int
    address: int
    size: int
    info_offset: int


class _SharedObject:
    def __init__(self, path: Path) -> None:
        self.content = path.read_bytes()
        try:
            header = _HEADER.unpack_from(self.content)
            if header[0] != _ELF64_LITTLE_ENDIAN:
                raise ValueError("another class or byte order")
            self.machine = header[2]
            self.segments = [
                _Segment(*_SEGMENT.unpack_from(self.content, header[5] + index * header[9]))
                for index in range(header[10])
            ]
            sections = [
                _SECTION.unpack_from(self.content, header[6] + index * header[11])
                for index in range(header[12])
            ]
            self.symbols = list(self._read_symbols(sections))
        except (struct.error, ValueError, KeyError, StopIteration) as error:
            raise BadInput(
                f"{path.name} is not a shared object for this kind of machine: {error!r}",
                hint="compile for 64-bit, little-endian Linux",
            ) from None

    def _read_symbols(self, sections: list[tuple[int, ...]]) -> Iterator[_Symbol]:
        """Yield the dynamic symbols: the table that the loader reads, whatever other sections
        are."""
        dynamic = next(s for s in self.segments if s.kind == _DYNAMIC_SEGMENT)
        entries = self.content[dynamic.offset : dynamic.offset + dynamic.file_size]
        # As the loader does: the last entry of a kind counts, and nothing after the end.
        tags = dict(takewhile(lambda entry: entry[0] != _END_TAG, _DYNAMIC.iter_unpack(entries)))
        table, strings = (self._in_file(tags[tag]) for tag in (_SYMBOLS_TAG, _STRINGS_TAG))
        size = max(s[5] for s in sections if s[1] == _DYNAMIC_SYMBOLS and s[4] == table)
        rows = _SYMBOL.iter_unpack(self.content[table : table + size])
        for index, (name, info, _, section, address, extent) in enumerate(rows):
            start = strings + name
            text = self.content[start : self.content.index(b"\0", start)]
            where = table + index * _SYMBOL.size + _INFO_OFFSET
            yield _Symbol(text, info, section, address, extent, where)

    def _in_file(self, address: int) -> int:
        offset = self.file_offset(address, needs=0)
        if offset is None:
            raise ValueError(f"nothing is loaded at address {address:#x}")
        return offset

    def file_offset(self, address: int, needs: int) -> int | None:
        """Tell where in the file the bytes of an address lie, if its segment has the needed
        rights."""
        for segment in self.segments:
            inside = 0 <= address - segment.address < segment.file_size
            if segment.kind == _LOAD and inside and segment.flags & needs == needs:
                return segment.offset + address - segment.address
        return None

    def exports(self) -> Iterator[tuple[_Symbol, int]]:
        """Yield every function on offer, and where in the file its code begins."""
        for symbol in self.symbols:
            defined = symbol.section not in (_UNDEFINED, _ABSOLUTE)
            visible = symbol.info >> 4 != _LOCAL and not _KEPT.fullmatch(symbol.name)
            code = self.file_offset(symbol.address, needs=_EXECUTABLE)
            if defined and visible and symbol.info & 0xF in _CALLABLE and code is not None:
                yield symbol, code


def exported_functions(path: Path) -> list[str]:
    """Return the functions that a shared object offers, in the order of its symbol table."""
    return [_text(symbol) for symbol, _ in _SharedObject(path).exports()]


def imported_symbols(path: Path) -> set[str]:
    """Return the names that a shared object takes from other libraries."""
    symbols = _SharedObject(path).symbols
    return {_text(symbol) for symbol in symbols if symbol.section == _UNDEFINED} - {""}


def unresolved_symbols(path: Path) -> set[str]:
    """Weak names that no library had when the object was linked: whatever the process that loads it
    happens to hold may take their places."""
    symbols = _SharedObject(path).symbols
    weak = (s for s in symbols if s.section == _UNDEFINED and s.info >> 4 == _WEAK)
    return {name for name in map(_text, weak) if not name.startswith(_USUALLY_OPEN)}


def neutralise(path: Path, out_path: Path) -> None:
    """Write a copy of a shared object in which every exported C function returns at once.

    Kernels are called by their C names. Functions with C++ names are parts of templates that the
    loader may run when it makes static objects: without them it would crash. An extension of
    PyTorch is called by C++ names, and makes its own results: there, launches do nothing.
    """
    shared = _SharedObject(path)
    if shared.machine not in _RETURNS:
        raise MissingPrerequisite(
            f"kernels for machine {shared.machine} cannot be replaced by no-ops",
            hint="evaluate on x86_64 or aarch64",
        )
    content = bytearray(shared.content)
    for symbol, start in shared.exports():
        if symbol.name.startswith(_CPP_PREFIX):
            continue
        code = next((c for c in _RETURNS[shared.machine] if len(c) <= symbol.size), None)
        code = code or _RETURNS[shared.machine][-1]
        content[start : start + len(code)] = code
        # An indirect function becomes a plain one, or its callers would jump to what the stub,
        # taken for the code that picks the function, left in a register.
        if symbol.info & 0xF == _INDIRECT_FUNCTION:
            content[symbol.info_offset] = (symbol.info & 0xF0) | _FUNCTION
    _leave_out_launches(shared, content)
    out_path.write_bytes(content)


def _leave_out_launches(shared: _SharedObject, content: bytearray) -> None:
    """Rename imported functions that launch kernels to one of the object's own that does nothing,
    if it brings one."""
    own = [s for s in shared.symbols if s.name == _NO_LAUNCH and s.section != _UNDEFINED]
    for symbol in shared.symbols if own else ():
        if symbol.section == _UNDEFINED and _LAUNCH.fullmatch(symbol.name):
            source, target = (s.info_offset - _INFO_OFFSET for s in (own[0], symbol))
            content[target : target + _NAME_SIZE] = content[source : source + _NAME_SIZE]


def _text(symbol: _Symbol) -> str:
    return symbol.name.decode(errors="replace")
