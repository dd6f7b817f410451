"""Is code in memory still what its file says?

A process may write to its own private copy of a file's pages, and run what it put there: the
library's code, under the name of an object that was compiled for it. Such pages belong to the
process, and no longer to the file, which the kernel tells.
"""

from __future__ import annotations

import mmap
from array import array

_PRESENT, _SWAPPED, _OF_A_FILE = 1 << 63, 1 << 62, 1 << 61


def is_modified(pid: int, begin: int, end: int) -> bool:
    """Has any page of a file's mapping been replaced by one of the process's own?

    Where the kernel does not tell, none is known to be.
    """
    first, last = begin // mmap.PAGESIZE, -(-end // mmap.PAGESIZE)
    pages = array("Q")
    try:
        with open(f"/proc/{pid}/pagemap", "rb", buffering=0) as file:
            file.seek(first * pages.itemsize)
            pages.frombytes(file.read((last - first) * pages.itemsize))
    except (OSError, ValueError):
        return False
    return any(page & (_PRESENT | _SWAPPED) and not page & _OF_A_FILE for page in pages)
