"""Reading a candidate's file."""

from __future__ import annotations

from pathlib import Path

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.programs.files import read_candidate
from kernel_smith.records import MAX_SOURCE


def test_a_byte_order_mark_is_no_part_of_a_program(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_bytes(b"\xef\xbb\xbfimport torch\n")
    assert read_candidate(tmp_path / "mine.py", "cpp").source == "import torch\n"


def test_a_file_of_weights_is_refused_before_memory_is_full() -> None:
    with pytest.raises(BadInput, match=f"too long, .* at most {MAX_SOURCE} characters"):
        read_candidate(Path("/dev/zero"), "cpp")
