"""Rows, files and folders of data sets."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from data_samples import program, step

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.records import Example, Task
from kernel_smith.trajectories.examples import ExampleSettings, example_of
from kernel_smith.trajectories.formats import FORMATS, Place, Row, find_format
from kernel_smith.trajectories.writing import complete_folder, open_rows

OLD, NEW = program("x = x * 2"), program("x = x * 3")


@pytest.fixture
def later() -> Example:
    made = example_of(step(OLD, NEW), ExampleSettings())
    assert made is not None
    return made


@pytest.fixture
def first() -> Example:
    made = example_of(step(None, NEW, gain=None), ExampleSettings())
    assert made is not None
    return made


def row_of(name: str, example: Example) -> Row:
    return find_format(name).row(example, Place("train", 7))


def test_rows_for_sft_are_prompt_and_completion(later: Example) -> None:
    row = row_of("trl-sft", later)
    assert [message["role"] for message in row["prompt"]] == ["system", "user"]
    assert row["completion"] == [{"role": "assistant", "content": later.answer}]
    assert (row["task_name"], row["family"]) == ("row_relu", "elementwise")


def test_rows_for_rl_hold_what_a_reward_needs(later: Example, first: Example) -> None:
    row = row_of("trl-rl", later)
    assert Task.model_validate_json(row["task"]).content_hash == later.task.content_hash
    assert row["parent"] == OLD.source
    assert row["gain"] == pytest.approx(1.2)  # of 1.3 [1.2, 1.4]
    assert "completion" not in row
    assert row_of("trl-rl", first)["parent"] is None
    assert row_of("trl-rl", first)["gain"] is None


@pytest.mark.parametrize("name", ["messages", "paper-sft"])
def test_conversations_end_with_the_answer(name: str, later: Example) -> None:
    row = row_of(name, later)
    assert [message["role"] for message in row["messages"]] == ["system", "user", "assistant"]
    assert row.get("_id", later.id) == later.id


def test_verl_rows_have_the_columns_that_it_asks_for(later: Example) -> None:
    row = row_of("verl", later)
    assert row["data_source"] == "kernel_rl"
    assert row["reward_model"]["style"] == "rule"
    truth = json.loads(row["reward_model"]["ground_truth"])
    assert truth == {"reference_code": later.task.source}
    assert row["extra_info"]["index"] == 7
    assert row["extra_info"]["parent_code"] == OLD.source


def test_published_rows_name_their_messages_differently(later: Example) -> None:
    row = row_of("paper-rl", later)
    assert set(row) == {"data_source", "reward_model", "extra_info", "message"}
    assert row["extra_info"]["entry_point"] == "ModelNew"


def test_rows_say_nothing_of_where_files_lie(later: Example) -> None:
    task = later.task.model_copy(update={"path": "/secret/task.py", "starts": {"cpp": "/secret"}})
    moved = later.model_copy(update={"task": task})
    for name in FORMATS:
        assert "secret" not in json.dumps(row_of(name, moved))


def test_an_unknown_format_names_those_there_are() -> None:
    with pytest.raises(BadInput, match="csv") as caught:
        find_format("csv")
    assert "trl-sft" in caught.value.hint


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_what_is_written_can_be_read(
    name: str, kind: Any, tmp_path: Path, first: Example, later: Example
) -> None:
    path = tmp_path / f"rows.{kind}"
    # Nulls come first, and there are more rows than are kept in memory.
    rows = [row_of(name, first)] + [row_of(name, later)] * 300
    writer = open_rows(path, kind, find_format(name).columns)
    for row in rows:
        writer.write(row)
    writer.close()
    assert read(path) == rows


def test_row_groups_are_bounded(tmp_path: Path, later: Example) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "rows.parquet"
    writer = open_rows(path, "parquet", find_format("messages").columns)
    for _ in range(600):
        writer.write(row_of("messages", later))
    writer.close()
    assert parquet.ParquetFile(path).num_row_groups == 3


def read(path: Path) -> list[Row]:
    if path.suffix == ".jsonl":
        return [json.loads(line) for line in path.read_text().splitlines()]
    parquet = pytest.importorskip("pyarrow.parquet")
    rows: list[Row] = parquet.read_table(path).to_pylist()
    return rows


def test_without_pyarrow_the_message_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    with pytest.raises(MissingPrerequisite) as caught:
        open_rows(tmp_path / "rows.parquet", "parquet", {})
    assert "kernel-smith[data]" in caught.value.hint


def test_a_folder_appears_when_it_is_complete(tmp_path: Path) -> None:
    target = tmp_path / "below" / "data"
    with complete_folder(target, "mark") as folder:
        (folder / "mark").write_text("new")
        assert not target.exists()
    assert (target / "mark").read_text() == "new"
    assert list(target.parent.iterdir()) == [target]


def test_a_failure_leaves_the_older_folder_and_nothing_else(tmp_path: Path) -> None:
    target = tmp_path / "data"
    target.mkdir()
    (target / "mark").write_text("old")

    def fail() -> None:
        with complete_folder(target, "mark") as folder:
            (folder / "mark").write_text("new")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail()
    assert (target / "mark").read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_folder_of_the_same_kind_is_replaced(tmp_path: Path) -> None:
    target = tmp_path / "data"
    for content in ("old", "new"):
        with complete_folder(target, "mark") as folder:
            (folder / "mark").write_text(content)
            (folder / content).touch()
    assert sorted(path.name for path in target.iterdir()) == ["mark", "new"]
    assert list(tmp_path.iterdir()) == [target]


def test_other_folders_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("years")
    with pytest.raises(BadInput, match="not a data set"), complete_folder(tmp_path, "mark"):
        pass
    assert (tmp_path / "thesis.tex").read_text() == "years"


def test_a_full_disk_is_the_users_to_mend(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="No space left"), complete_folder(tmp_path / "d", "mark"):
        raise OSError(28, "No space left on device")
    assert not list(tmp_path.iterdir())
