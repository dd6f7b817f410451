"""Choosing a task's precision over what its file says."""

from pathlib import Path

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.records import Precision, Task
from kernel_smith.tasks import find_task, precision_in_source, with_precision

REFERENCE = """
class Model:
    def forward(self, x): return x

def get_inputs(): return []
"""


@pytest.fixture
def written(tmp_path: Path):
    """Writes a task file that states a precision, or none, and returns its path."""

    def write(stated: str | None = None) -> str:
        path = tmp_path / f"{stated}.py"
        head = f"TASK = {{'precision': '{stated}'}}\n" if stated else ""
        path.write_text(head + REFERENCE)
        return str(path)

    return write


@pytest.mark.parametrize("stated", [None, *Precision])
@pytest.mark.parametrize("chosen", Precision)
def test_what_is_chosen_overrides_what_is_stated(written, stated, chosen):
    path = written(stated)
    task = find_task(path, chosen)
    assert task.precision is chosen
    assert precision_in_source(task) == (stated or Precision.STRICT)
    assert task == with_precision(find_task(path), chosen.value)
    assert Task.model_validate_json(task.model_dump_json()) == task


def test_without_a_choice_the_task_is_left_alone(written):
    task = find_task(written("bf16"), None)
    assert task.precision is Precision.BF16
    assert with_precision(task, None) is task


def test_the_choice_is_part_of_the_identity_of_the_task(written):
    path = written()
    hashes = {find_task(path, precision).content_hash for precision in Precision}
    assert len(hashes) == len(Precision)
    assert find_task(path, "strict").content_hash == find_task(path).content_hash


def test_a_built_in_task_takes_it_too():
    assert find_task("row_softmax", "tf32").precision is Precision.TF32


@pytest.mark.parametrize("name", ["fp32", "", "BF16", "float16"])
def test_an_unknown_precision_is_answered_with_the_known_ones(written, name):
    with pytest.raises(BadInput, match="no precision is called") as caught:
        find_task(written(), name)
    assert "`strict`, `tf32`, `bf16`, `fp16`" in caught.value.what
    assert "write `strict`" in caught.value.hint


@pytest.mark.parametrize("source", ["", "not (python", "TASK = {'precision': 'fp8'}", "a\0b"])
def test_text_that_cannot_be_read_states_the_default(source):
    assert precision_in_source(Task(name="t", source=source)) is Precision.STRICT
