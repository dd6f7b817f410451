"""Rows of a data set: which files are read, and what is said of those that do not fit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.training.rows import data_files, fingerprint, need_rows, read_rows

Rows = list[dict[str, Any]]
WriteRows = Callable[[str, Rows], Path]


def test_jsonl_and_parquet_hold_the_same_rows(
    write_rows: WriteRows, sft_rows: Rows, tmp_path: Path
) -> None:
    import pyarrow
    import pyarrow.parquet

    parquet = tmp_path / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(sft_rows), parquet)
    folder = write_rows("sft", sft_rows)
    assert need_rows(folder, "sft") == need_rows(parquet, "sft") == sft_rows
    assert need_rows(folder / "train.jsonl", "sft") == sft_rows


def test_of_a_folder_with_both_kinds_each_training_reads_its_own(
    write_rows: WriteRows, sft_rows: Rows, rl_rows: Rows, tmp_path: Path
) -> None:
    write_rows("sft", sft_rows)
    write_rows("rl", rl_rows)
    assert need_rows(tmp_path, "sft") == sft_rows
    assert need_rows(tmp_path, "rl") == rl_rows


def test_validation_rows_are_kept_apart(write_rows: WriteRows, sft_rows: Rows) -> None:
    folder = write_rows("sft", sft_rows)
    (folder / "validation.jsonl").write_text(json.dumps(sft_rows[0]) + "\n")
    assert need_rows(folder, "sft") == sft_rows
    assert read_rows(data_files(folder, "validation"), "sft") == sft_rows[:1]
    assert data_files(folder / "train.jsonl", "validation") == []


def test_no_rows_are_refused(write_rows: WriteRows, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="has no rows for SFT") as caught:
        need_rows(write_rows("empty", []), "sft")
    assert "--format trl-sft" in caught.value.hint
    with pytest.raises(BadInput, match="there is no data in"):
        need_rows(tmp_path / "nowhere", "rl")


def test_rows_of_the_other_kind_are_recognised(write_rows: WriteRows, rl_rows: Rows) -> None:
    with pytest.raises(BadInput, match=r"train\.jsonl:1: not a row for SFT") as caught:
        need_rows(write_rows("rl", rl_rows), "sft")
    assert "kernel-smith train rl" in caught.value.hint


@pytest.mark.parametrize("line", ["{", "[1]", '{"prompt": "text", "completion": "text"}'])
def test_lines_that_are_no_rows_are_named(line: str, tmp_path: Path) -> None:
    (tmp_path / "train.jsonl").write_text(f"{line}\n")
    with pytest.raises(BadInput, match=r"train\.jsonl:1: "):
        need_rows(tmp_path, "sft")


def test_a_file_that_only_calls_itself_parquet_is_refused(tmp_path: Path) -> None:
    (tmp_path / "train.parquet").write_text("no")
    with pytest.raises(BadInput, match="is no Parquet file"):
        need_rows(tmp_path, "rl")


def test_other_data_has_another_fingerprint(write_rows: WriteRows, sft_rows: Rows) -> None:
    one, other = write_rows("one", sft_rows), write_rows("other", sft_rows[:2])
    assert fingerprint(data_files(one)) != fingerprint(data_files(other))
