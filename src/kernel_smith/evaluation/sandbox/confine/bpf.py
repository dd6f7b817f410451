"""A tiny assembler for the classic BPF programs that filter system calls.

Programs are built from blocks. Every block that a test guards ends in `give`, so that control
reaches the instruction after a block only if its test failed, and no jump needs a label.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import NamedTuple

# Offsets in `struct seccomp_data`, of which a program sees one per system call
NUMBER = 0
ARCHITECTURE = 4
_ARGUMENTS = 16

EQUAL = 0x15  # jump if the accumulator equals the constant
GREATER = 0x25  # ... is above it, as an unsigned number
ANY_BIT = 0x45  # ... has a bit in common with it
_LOAD = 0x20
_AND = 0x54
_RETURN = 0x06

ALLOW = 0x7FFF_0000
KILL_PROCESS = 0x8000_0000
_ERRNO = 0x0005_0000


class Instruction(NamedTuple):
    code: int
    if_true: int
    if_false: int
    constant: int


Block = list[Instruction]


def refuse(errno: int) -> int:
    """The verdict that makes the call fail; with 0 it seems to succeed and does nothing."""
    return _ERRNO | errno


def load(offset: int) -> Block:
    return [Instruction(_LOAD, 0, 0, offset)]


def load_argument(index: int, *, high_half: bool = False) -> Block:
    """One half of a 64-bit argument; both supported architectures are little-endian."""
    return load(_ARGUMENTS + 8 * index + 4 * high_half)


def keep_bits(mask: int) -> Block:
    return [Instruction(_AND, 0, 0, mask)]


def give(verdict: int) -> Block:
    return [Instruction(_RETURN, 0, 0, verdict)]


def when(test: int, constant: int, block: Block) -> Block:
    return [Instruction(test, 0, len(block), constant), *block]


def unless(test: int, constant: int, block: Block) -> Block:
    return [Instruction(test, len(block), 0, constant), *block]


def assemble(program: Iterable[Instruction]) -> bytes:
    """The program as an array of `struct sock_filter`."""
    return b"".join(struct.pack("<HBBI", *instruction) for instruction in program)
