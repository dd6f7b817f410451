"""Reading and writing a candidate's file, for every command that takes or makes one."""

from __future__ import annotations

import os
from pathlib import Path

from kernel_smith.cli.output import unwritable
from kernel_smith.programs.files import read_candidate

__all__ = ["check_writable", "make_folder", "read_candidate", "write_candidate"]


def check_writable(path: Path) -> None:
    """Refuse at once what would fail after all of the work."""
    try:
        if path.is_dir():
            raise unwritable(path, "Is a directory")
        if not os.access(path if path.exists() else path.absolute().parent, os.W_OK):
            raise unwritable(path, "its folder is missing, or permission is")
    except (OSError, ValueError) as error:  # a name that no file can have
        raise unwritable(path, getattr(error, "strerror", None) or str(error)) from None


def make_folder(path: Path) -> None:
    """For many of them."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise unwritable(path, error.strerror or str(error), "folder") from None


def write_candidate(path: Path, source: str) -> None:
    try:
        path.write_text(source, encoding="utf-8")
    except OSError as error:
        raise unwritable(path, error.strerror or str(error)) from None
