"""The checked-in JSON schemas describe the records as they are."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from kernel_smith.records import Candidate, Evaluation, Options, Reason, Task, WorstElement
from kernel_smith.records.schema_files import COMMAND, DESCRIBED, FOLDER, main, stale, write
from kernel_smith.tasks import builtin_tasks

MakeEvaluation = Callable[..., Evaluation]


@functools.cache
def validator(name: str) -> Any:
    schema = json.loads((FOLDER / name).read_text())
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    return kind(schema)


def validate(name: str, data: Any) -> None:
    validator(name).validate(data)


def test_checked_in_schemas_are_up_to_date() -> None:
    assert stale() == []


def test_check_names_what_is_stale_and_the_remedy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "schemas"
    write(folder)
    assert main(["--check", "--folder", str(folder)]) == 0
    (folder / "task.json").write_text("{}\n")
    (folder / "options.json").unlink()
    (folder / "forgotten.json").write_text("{}\n")
    assert main(["--check", "--folder", str(folder)]) == 1
    complaint = capsys.readouterr().err
    assert all(name in complaint for name in ("task.json", "options.json", "forgotten.json"))
    assert "candidate.json" not in complaint
    assert COMMAND in complaint
    assert main(["--folder", str(folder)]) == 0
    assert main(["--check", "--folder", str(folder)]) == 0
    assert {path.name for path in folder.iterdir()} == set(DESCRIBED)


def test_the_command_that_the_hint_names_works() -> None:
    words = COMMAND.split()[1:]
    done = subprocess.run([sys.executable, *words, "--check"], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


@pytest.mark.parametrize("name", DESCRIBED)
def test_files_have_sorted_keys_and_a_trailing_newline(name: str) -> None:
    text = (FOLDER / name).read_text()
    assert text == json.dumps(json.loads(text), indent=2, sort_keys=True) + "\n"


def test_every_built_in_task_satisfies_the_schema() -> None:
    for task in builtin_tasks():
        validate("task.json", task.model_dump(mode="json"))


def test_minimal_records_satisfy_their_schemas() -> None:
    validate("task.json", {"name": "t", "source": ""})
    validate("candidate.json", {"source": ""})
    validate("options.json", {})
    Task.model_validate({"name": "t", "source": ""})
    Candidate.model_validate({"source": ""})
    Options.model_validate({})


@pytest.mark.parametrize("reason", [None, *Reason])
def test_evaluations_of_every_reason_satisfy_the_schema(
    make_evaluation: MakeEvaluation, reason: Reason | None
) -> None:
    validate("evaluation.json", make_evaluation(reason).model_dump(mode="json"))


def test_an_element_that_is_not_a_number_satisfies_the_schema(
    make_evaluation: MakeEvaluation,
) -> None:
    worst = WorstElement(
        workload="w",
        inputs="author",
        output=0,
        index=(0,),
        got=float("nan"),
        expected=1.0,
        allowed=1e-5,
    )
    evaluation = make_evaluation(Reason.NON_FINITE, worst=worst)
    validate("evaluation.json", json.loads(evaluation.model_dump_json()))


@pytest.mark.parametrize(
    "change",
    [{"stage": "fine"}, {"speedup": 3}, {"timing": {"cores": []}}, {"created_at": 5}],
    ids=str,
)
def test_the_schema_refuses_what_the_record_refuses(
    make_evaluation: MakeEvaluation, change: dict[str, Any]
) -> None:
    data = make_evaluation().model_dump(mode="json") | change
    with pytest.raises(jsonschema.ValidationError):
        validate("evaluation.json", data)
