"""The built-in suites and finding tasks in them."""

from pathlib import Path

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.tasks import builtin_tasks, catalog, find_task

TASK = """
TASK = {settings}

class Model:
    def forward(self, x): return x

def get_inputs(): return []
"""


def add(suite: Path, folder: str, settings: str = "{}") -> Path:
    path = suite / folder / "task.py"
    path.parent.mkdir(parents=True)
    path.write_text(TASK.replace("{settings}", settings))
    return path


@pytest.fixture
def suite(tmp_path, monkeypatch):
    folder = tmp_path / "suite"
    add(folder, "row_sum", '{"family": "reduction"}')
    add(folder, "gelu", '{"family": "elementwise"}')
    add(folder, "column_sum", '{"family": "reduction"}')
    (folder / "__pycache__").mkdir()
    gpu = tmp_path / "gpu_suite"
    add(gpu, "row_sum_llm", '{"family": "reduction"}')
    monkeypatch.setattr(catalog, "SUITES", {"cpu": folder, "gpu": gpu})
    monkeypatch.chdir(tmp_path)
    return folder


def test_the_suite_is_listed_by_family_and_name(suite):
    assert [task.name for task in builtin_tasks()] == ["gelu", "column_sum", "row_sum"]
    assert [task.name for task in builtin_tasks("gpu")] == ["row_sum_llm"]


def test_an_unknown_suite_is_answered_with_the_known_ones():
    with pytest.raises(BadInput, match="no suite is called 'tpu'") as caught:
        builtin_tasks("tpu")
    assert "`cpu`, `gpu`" in caught.value.hint


def test_the_shipped_suites_can_be_read_and_no_name_occurs_twice():
    suites = {suite: [task.name for task in builtin_tasks(suite)] for suite in ("cpu", "gpu")}
    assert all(len(names) > 1 for names in suites.values())
    together = [name for names in suites.values() for name in names]
    assert len(set(together)) == len(together)


def test_a_built_in_name_is_found_in_every_suite(suite):
    assert find_task("row_sum").family == "reduction"
    assert find_task("row_sum_llm").name == "row_sum_llm"


def test_a_file_and_a_folder_with_a_task_are_found(suite, tmp_path):
    path = add(tmp_path, "mine")
    path.with_name("other.py").write_text(path.read_text())
    assert find_task("mine").name == "mine"
    assert find_task(str(path)).name == "mine"
    assert find_task("mine/other.py").name == "other"


def test_what_the_user_has_comes_before_what_is_built_in(suite, tmp_path):
    add(tmp_path, "gelu", '{"family": "mine"}')
    assert find_task("gelu").family == "mine"


def test_a_folder_without_a_task_does_not_hide_a_built_in_name(suite, tmp_path):
    (tmp_path / "gelu").mkdir()
    assert find_task("gelu").family == "elementwise"


def test_a_misspelt_name_is_answered_with_near_ones(suite):
    with pytest.raises(BadInput, match="no task is called 'row_sums'") as caught:
        find_task("row_sums")
    assert "`row_sum`" in caught.value.hint
    assert "kernel-smith tasks list" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("zzz", "no task is called 'zzz'"),
        ("", "no task is called ''"),
        ("nowhere/a.py", "nowhere/a.py: no such file"),
        ("a.py", "a.py: no such file"),
        ("suite", "suite: the folder holds no `task.py`"),
        ("/dev/null", "/dev/null: a pipe or a device, expected a task file"),
        ("loop", "loop: cannot be read (Too many levels of symbolic links)"),
        ("folder", "folder: cannot be read (Too many levels of symbolic links)"),
        ("a\0b", "no task is called"),
        ("x" * 5000, "no task is called"),
    ],
)
def test_what_cannot_be_found_points_to_the_list(suite, name, what):
    Path("loop").symlink_to("loop")
    Path("folder").mkdir()
    Path("folder", "task.py").symlink_to("task.py")
    with pytest.raises(BadInput) as caught:
        find_task(name)
    assert what in caught.value.what
    assert "kernel-smith tasks list" in caught.value.hint
