"""From stores to data sets."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from data_samples import program, task, write_run
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.errors import BadInput
from kernel_smith.proposers.model.parse import Program, parse_answer
from kernel_smith.records import Reason
from kernel_smith.store import Store, StoreError
from kernel_smith.tasks import find_task
from kernel_smith.testing.trivial import TrivialEngine
from kernel_smith.trajectories.build import BuildResult, BuildSettings, build
from kernel_smith.trajectories.card import Card
from kernel_smith.trajectories.split import TaskKey, assign

OPERATIONS = ("relu", "exp", "sin", "cos", "tan", "abs", "neg", "sqrt")


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """Eight tasks; of each a first step, two good ones, and one that was wrong."""
    path = tmp_path / "runs.sqlite"
    for operation in OPERATIONS:
        family = "trigonometry" if operation in ("sin", "cos", "tan") else "elementwise"
        about = task(f"row_{operation}", operation, family)
        write_run(path, f"{operation}-1", about, (1.0, 1.5, 2.0, Reason.WRONG_VALUES))
    return path


def made(store: Path, folder: Path, **settings: Any) -> BuildResult:
    fields = {"stores": [store], "folder": folder} | settings
    return build(BuildSettings.model_validate(fields), lambda said: None)


def rows_in(folder: Path) -> dict[str, list[dict[str, Any]]]:
    return {
        path.stem: [json.loads(line) for line in path.read_text().splitlines()]
        for path in sorted(folder.rglob("*.jsonl"))
    }


def test_the_good_steps_become_rows(store: Path, tmp_path: Path) -> None:
    result = made(store, tmp_path / "data", validation=0)
    assert result.steps_read == 32
    assert result.rows == {"train": 24}
    assert result.refused["correct"] == 8
    rows = rows_in(tmp_path / "data")["train"]
    assert Counter(row["task_name"] for row in rows) == dict.fromkeys(
        (f"row_{operation}" for operation in OPERATIONS), 3
    )
    assert result.files == (tmp_path / "data" / "trl-sft" / "train.jsonl",)


def test_answers_give_the_programs_of_the_run(store: Path, tmp_path: Path) -> None:
    made(store, tmp_path / "data", validation=0, filters=["correct"], hold_out=["elementwise"])
    answers = [row["completion"][0]["content"] for row in rows_in(tmp_path / "data")["train"]]
    lines = [f"x = torch.row_sin_{number}(x)" for number in range(3)]
    parent = ""
    for number in range(3):
        child = program(*lines[: number + 1]).source
        results = [parse_answer(answer, parent) for answer in answers]
        assert child in [each.source for each in results if isinstance(each, Program)]
        parent = child


def test_tasks_are_in_one_split_alone(store: Path, tmp_path: Path) -> None:
    result = made(store, tmp_path / "data", validation=0.3)
    rows = rows_in(tmp_path / "data")
    names = {split: {row["task_name"] for row in each} for split, each in rows.items()}
    assert names["train"] and names["validation"]
    assert not names["train"] & names["validation"]
    assert result.tasks == {split: len(each) for split, each in names.items()}


def test_the_same_settings_give_the_same_files(store: Path, tmp_path: Path) -> None:
    for name in ("one", "two"):
        made(store, tmp_path / name, validation=0.5)
    assert rows_in(tmp_path / "one") == rows_in(tmp_path / "two")


def test_a_held_out_family_is_in_no_file(store: Path, tmp_path: Path) -> None:
    result = made(store, tmp_path / "data", hold_out=["trigonometry"], validation=0.5)
    rows = [row for rows in rows_in(tmp_path / "data").values() for row in rows]
    assert {row["family"] for row in rows} == {"elementwise"}
    assert result.refused["held-out"] == 12


def test_a_copy_of_a_held_out_task_is_held_out_whatever_it_is_called(
    store: Path, tmp_path: Path
) -> None:
    copy = task("mine", "sin", "others")
    other = copy.source.replace("(self, x)", "(self, data)").replace("(x)", "(data)")
    write_run(
        store, "mine-1", copy.model_copy(update={"source": other.replace("8", "4096")}), (1.0,)
    )
    result = made(store, tmp_path / "data", hold_out=["row_sin"], validation=0)
    names = {row["task_name"] for row in rows_in(tmp_path / "data")["train"]}
    assert names.isdisjoint({"mine", "row_sin"})
    assert result.refused["held-out"] == 5


def test_a_copy_of_a_built_in_task_is_held_out_where_no_run_has_its_name(
    store: Path, tmp_path: Path
) -> None:
    copy = find_task("row_softmax").model_copy(update={"name": "mine", "family": "others"})
    write_run(store, "mine-1", copy, (1.0,))
    made(store, tmp_path / "data", hold_out=["row_softmax"], validation=0)
    assert "mine" not in {row["task_name"] for row in rows_in(tmp_path / "data")["train"]}


def test_holding_out_works_with_filters_of_ones_own(store: Path, tmp_path: Path) -> None:
    made(store, tmp_path / "data", hold_out=["row_sin"], filters=["correct"])
    rows = [row for rows in rows_in(tmp_path / "data").values() for row in rows]
    assert "row_sin" not in {row["task_name"] for row in rows}


def test_a_slip_in_what_to_hold_out_is_an_error(store: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="'row_sine'") as caught:
        made(store, tmp_path / "data", hold_out=["row_sine"])
    assert "row_sin" in caught.value.hint


def test_a_step_that_is_in_two_stores_is_one_row(store: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.sqlite"
    copy.write_bytes(store.read_bytes())
    result = made(store, tmp_path / "data", stores=[store, copy], filters=["correct"], validation=0)
    assert result.rows == {"train": 24}
    assert result.left_out == {"repeated": 24}


def test_only_the_runs_that_are_named_are_read(store: Path, tmp_path: Path) -> None:
    assert made(store, tmp_path / "data", runs=["sin-1"]).steps_read == 4


def test_formats_lie_side_by_side(store: Path, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    data = tmp_path / "data"
    result = made(store, data, purpose="rl", formats=["trl-rl", "verl"], validation=0.3)
    assert [str(path.relative_to(data)) for path in result.files] == [
        "trl-rl/train.jsonl",
        "trl-rl/validation.jsonl",
        "verl/train.parquet",
        "verl/validation.parquet",
    ]
    there = sorted(str(path.relative_to(data)) for path in data.rglob("*") if path.is_file())
    expected = ["README.md", "card.json", *(str(path.relative_to(data)) for path in result.files)]
    assert there == expected


def test_a_data_set_that_is_there_is_replaced(store: Path, tmp_path: Path) -> None:
    made(store, tmp_path / "data", formats=["messages"])
    made(store, tmp_path / "data", formats=["trl-sft"])
    assert {path.parent.name for path in (tmp_path / "data").rglob("*.jsonl")} == {"trl-sft"}


def test_the_card_accounts_for_every_step(store: Path, tmp_path: Path) -> None:
    result = made(store, tmp_path / "data", hold_out=["row_abs"], validation=0.2)
    card = Card.model_validate_json((tmp_path / "data" / "card.json").read_text())
    refused = sum(note.refused for note in card.filters)
    rows = sum(card.rows.values())
    assert card.steps_read == refused + rows + sum(card.left_out.values()) == 32
    for counts in card.counts.values():
        assert sum(counts.values()) == rows
    assert card.counts["kind"] == {"later": 14, "first": 7}
    assert card.provenance.stores == (str(store),)
    assert len(card.provenance.runs) == 7
    assert card.rows == result.rows
    assert card.settings["hold_out"] == ["row_abs"]


def test_the_readme_tells_people_and_hosts(store: Path, tmp_path: Path) -> None:
    made(store, tmp_path / "data", validation=0.3)
    text = (tmp_path / "data" / "README.md").read_text()
    assert text.startswith("---\n")
    assert "- config_name: trl-sft" in text
    assert "path: trl-sft/validation.jsonl" in text
    assert re.search(r"\| correct \| .* \| 8 \|", text)
    for title in ("Files", "Rows by kind", "Filters", "Provenance", "Settings", "Licence"):
        assert f"## {title}\n" in text


def test_hosts_find_the_splits_of_all_formats_in_files_of_the_same_kind(
    store: Path, tmp_path: Path
) -> None:
    pytest.importorskip("pyarrow")
    yaml = pytest.importorskip("yaml")
    made(store, tmp_path / "data", formats=["trl-sft", "verl", "messages"], validation=0.3)
    head = (tmp_path / "data" / "README.md").read_text().split("---\n")[1]
    configs = yaml.safe_load(head)["configs"]
    assert [each["config_name"] for each in configs] == ["trl-sft", "messages"]
    for config in configs:
        for part in config["data_files"]:
            assert (tmp_path / "data" / part["path"]).is_file()


def test_where_nothing_is_left_the_message_says_who_refused(store: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="held-out refused 32"):
        made(store, tmp_path / "data", hold_out=["trigonometry", "elementwise"])
    assert [path.name for path in tmp_path.iterdir() if "data" in path.name] == []


def test_where_no_gain_is_large_enough_the_hint_is_to_ask_for_less(tmp_path: Path) -> None:
    store = tmp_path / "runs.sqlite"
    # No answer gives a program with this comment, so the first step is no example either.
    write_run(store, "a", task("row_sin", "sin"), (1.0, 1.1, 1.2), label="sin(x)  # <think>")
    with pytest.raises(BadInput, match="faster refused 2; no-answer 1") as caught:
        made(store, tmp_path / "data", thresholds={"least_gain": 3.0})
    assert "--least-gain" in caught.value.hint


def test_an_empty_store_asks_for_runs(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    Store.open(path, create=True).close()
    with pytest.raises(BadInput, match="no evaluated step") as caught:
        made(path, tmp_path / "data")
    assert "kernel-smith optimize" in caught.value.hint


def test_a_damaged_store_is_reported_as_such_and_nothing_is_written(
    store: Path, tmp_path: Path
) -> None:
    content = bytearray(store.read_bytes())
    for place in range(len(content) // 3, len(content)):
        content[place] ^= 0x5A
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(content)
    with pytest.raises(StoreError):
        made(damaged, tmp_path / "data")
    assert [path.name for path in tmp_path.iterdir() if "data" in path.name] == []


KEYS = st.builds(
    TaskKey, st.sampled_from("abcdefgh"), st.sampled_from([bytes([each]) for each in range(8)])
)


@given(st.lists(KEYS), st.floats(0, 0.99), st.integers(0, 5))
def test_tasks_that_share_a_name_or_a_reference_are_never_parted(
    tasks: list[TaskKey], validation: float, seed: int
) -> None:
    parts = assign(tasks, validation=validation, seed=seed)
    assert set(parts) == set(tasks)
    assert parts == assign(reversed(tasks), validation=validation, seed=seed)
    for one in tasks:
        for other in tasks:
            if one.name == other.name or one.reference == other.reference:
                assert parts[one] == parts[other]


@given(st.integers(2, 30), st.floats(0.01, 0.99), st.integers(0, 5))
def test_several_tasks_leave_something_to_learn_from_and_to_validate_on(
    count: int, validation: float, seed: int
) -> None:
    tasks = [TaskKey(str(number), bytes([number])) for number in range(count)]
    assert set(assign(tasks, validation=validation, seed=seed).values()) == {"train", "validation"}


def test_a_task_stays_in_its_split_when_others_come() -> None:
    tasks = [TaskKey(f"task_{number}", number.to_bytes(2, "big")) for number in range(400)]
    some = assign(tasks[:200], validation=0.2, seed=0)
    every = assign(tasks, validation=0.2, seed=0)
    assert some == {task: every[task] for task in tasks[:200]}
    assert 0.1 < list(every.values()).count("validation") / 400 < 0.3


def test_steps_that_may_be_good_are_measured_again_before_they_are_kept(tmp_path: Path) -> None:
    store, folder = tmp_path / "runs.sqlite", tmp_path / "data"
    write_run(store, "relu-1", task("row_relu"), (1.0, 1.5, 2.0, 1.2, Reason.WRONG_VALUES))
    engine = TrivialEngine(
        lambda candidate: (1.0, 1.5, 1.4)[candidate.source.count("row_relu") - 1]
    )
    settings = BuildSettings(
        stores=(store,), folder=folder, filters=("correct", "faster"), validation=0
    )
    result = build(settings, lambda said: None, engine)
    assert result.steps_read == 5
    assert result.rows == {"train": 2}
    assert result.refused == {"correct": 1, "faster": 2}
    assert len(engine.evaluated) == 4  # the last good one beside its parent and its grandparent

    build(settings, lambda said: None, engine)
    assert len(engine.evaluated) == 4, "what was measured is remembered"
