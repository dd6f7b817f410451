"""What a readable task file becomes."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.errors import BadInput
from kernel_smith.records import Admission, Precision, Task, Tolerance, Variant
from kernel_smith.tasks import read_task

REFERENCE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.softmax(x, dim=-1)
"""

KERNELBENCH = """import torch
import torch.nn as nn

class Model(nn.Module):
    \"\"\"Multiplies two matrices.\"\"\"

    def __init__(self, features: int):
        super(Model, self).__init__()
        self.features = features

    def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return torch.matmul(a, b)

batch_size = 16
N = 2048 * 2

def get_inputs():
    a = torch.rand(batch_size, N)
    b = torch.rand(N, batch_size)
    return [a, b]

def get_init_inputs():
    return [N]
"""


def write(folder: Path, text: str, name: str = "my_task.py") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def task(folder: Path, settings: str = "", parameters: str = "**sizes") -> Task:
    """A task with this TASK dictionary and these parameters of `get_inputs`."""
    assignment = f"TASK = {settings}\n" if settings else ""
    function = f"def get_inputs({parameters}):\n    return [torch.randn(2, 2)]\n"
    return read_task(write(folder, assignment + REFERENCE + function))


def test_a_kernelbench_file_is_a_task_as_it_stands(tmp_path):
    path = write(tmp_path, KERNELBENCH, "1_Square_matmul.py")
    read = read_task(path)
    assert read.name == "1_Square_matmul"
    assert read.source == KERNELBENCH
    assert read.path == str(path.resolve())
    assert read.family == "unsorted"
    assert read.description == ""
    assert read.precision is Precision.STRICT
    assert [(w.name, w.params, w.weight) for w in read.workloads] == [("default", {}, 1.0)]
    assert Variant.STRIDED not in read.variants
    assert len(read.variants) == len(Variant) - 1
    assert read.library_calls
    assert read.starts == {}


def test_every_key_is_read(tmp_path):
    write(tmp_path, "", "kernel.py")
    read = task(
        tmp_path,
        """{
    "name": "soft", "family": "softmax", "description": "Rows.", "precision": "bf16",
    "workloads": {"wide": {"rows": 4, "dtype": "bfloat16"}, "tall": {"rows": 9, "weight": 2}},
    "tolerance": {"rtol": 1e-3, "atol": 0},
    "variants": ["large", "strided", "large"],
    "library_calls": False, "admit": ("accepts-zeros",), "starts": {"cpp": "kernel.py"},
}""",
    )
    assert (read.name, read.family, read.description) == ("soft", "softmax", "Rows.")
    assert read.precision is Precision.BF16
    assert [(w.name, w.params, w.weight) for w in read.workloads] == [
        ("wide", {"rows": 4, "dtype": "bfloat16"}, 1.0),
        ("tall", {"rows": 9}, 2.0),
    ]
    assert read.tolerance == Tolerance(rtol=1e-3, atol=0.0)
    assert read.variants == (Variant.LARGE, Variant.STRIDED)
    assert not read.library_calls
    assert read.admit == (Admission.ACCEPTS_ZEROS,)
    assert read.starts == {"cpp": str((tmp_path / "kernel.py").resolve())}


def test_the_annotated_form_of_the_dictionary_is_read(tmp_path):
    text = 'TASK: dict[str, object] = {"family": "f"}\n' + KERNELBENCH
    assert read_task(write(tmp_path, text)).family == "f"


def test_no_variants_can_be_asked_for(tmp_path):
    assert task(tmp_path, '{"variants": []}').variants == ()


def test_the_docstring_is_the_description_unless_the_dictionary_gives_one(tmp_path):
    docstring = '"""Row-wise softmax.\n\n    More.\n"""\n'
    assert read_task(write(tmp_path, docstring + KERNELBENCH)).description == (
        "Row-wise softmax.\n\nMore."
    )
    text = docstring + 'TASK = {"description": "Other."}\n' + KERNELBENCH
    assert read_task(write(tmp_path, text)).description == "Other."


def test_a_file_called_task_is_named_after_its_folder_and_finds_its_starts(tmp_path):
    folder = tmp_path / "row_sum"
    folder.mkdir()
    path = write(folder, KERNELBENCH, "task.py")
    start = write(folder, "", "start_cpp.py")
    write(folder, "", "helper.py")
    read = read_task(path)
    assert read.name == "row_sum"
    assert read.starts == {"cpp": str(start.resolve())}


def test_the_folder_names_a_task_that_was_given_by_a_relative_path(tmp_path, monkeypatch):
    folder = tmp_path / "row_sum"
    folder.mkdir()
    write(folder, KERNELBENCH, "task.py")
    monkeypatch.chdir(folder)
    assert read_task(Path("task.py")).name == "row_sum"


def test_files_beside_another_file_are_not_its_starts(tmp_path):
    write(tmp_path, "", "start_cpp.py")
    assert read_task(write(tmp_path, KERNELBENCH)).starts == {}


def test_reading_runs_nothing(tmp_path):
    proof = tmp_path / "ran"
    text = f"open({str(proof)!r}, 'w').close()\nraise SystemExit(9)\n" + KERNELBENCH
    assert read_task(write(tmp_path, text)).name == "my_task"
    assert not proof.exists()


def test_reading_leaves_torch_unloaded(tmp_path):
    path = write(tmp_path, KERNELBENCH)
    code = (
        "import sys; from pathlib import Path; from kernel_smith.tasks import read_task, "
        "builtin_tasks; read_task(Path(sys.argv[1])); builtin_tasks(); "
        "sys.exit('torch' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code, str(path)]).returncode == 0


def test_a_byte_order_mark_and_windows_line_ends_are_fine(tmp_path):
    path = tmp_path / "my_task.py"
    path.write_bytes(b"\xef\xbb\xbf" + KERNELBENCH.replace("\n", "\r\n").encode())
    assert read_task(path).name == "my_task"


def test_an_invalid_escape_in_the_file_is_no_reason_to_fail(tmp_path):
    assert read_task(write(tmp_path, KERNELBENCH + 'PATTERN = "\\d"\n')).name == "my_task"


@pytest.mark.parametrize(
    "model",
    [
        "class Base(nn.Module):\n    def forward(self, x): return x\nclass Model(Base): pass",
        "class Model(elsewhere.Block): pass",
        "def run(self, x): return x\nclass Model(nn.Module):\n    forward = run",
        "if True:\n    class Model(nn.Module):\n        def forward(self, x): return x",
        "try:\n    import a\nexcept ImportError:\n    class Model:\n        def forward(self): ...",
    ],
)
def test_forward_may_come_from_elsewhere(tmp_path, model):
    text = f"from torch import nn\n{model}\ndef get_inputs(): return []\n"
    assert read_task(write(tmp_path, text)).name == "my_task"


@pytest.mark.parametrize(
    "parameters", ["rows", "rows=1", "*, rows", "*, rows=1", "**sizes", "*args, rows", "a=1, **k"]
)
def test_a_workload_argument_may_meet_any_keyword_parameter(tmp_path, parameters):
    read = task(tmp_path, '{"workloads": {"w": {"rows": 5}}}', parameters)
    assert read.workloads[0].params == {"rows": 5}


def test_get_init_inputs_need_not_name_what_the_workload_gives(tmp_path):
    text = (
        'TASK = {"workloads": {"w": {"rows": 5, "size": 2}}}\n'
        + REFERENCE
        + "def get_inputs(rows, size): return []\ndef get_init_inputs(size): return [size]\n"
    )
    assert read_task(write(tmp_path, text)).workloads[0].params == {"rows": 5, "size": 2}


def test_a_task_comes_back_from_json_unchanged(tmp_path):
    read = task(tmp_path, '{"workloads": {"w": {"shape": (2, 3), "m": {"a": [1, None, -2.5]}}}}')
    assert read.workloads[0].params == {"shape": [2, 3], "m": {"a": [1, None, -2.5]}}
    assert Task.model_validate_json(read.model_dump_json()) == read


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text() | st.integers(), inner),
    max_leaves=6,
)


@settings(deadline=None)
@given(task=st.dictionaries(st.sampled_from([*Task.model_fields, "x"]), VALUES))
def test_any_dictionary_is_either_read_or_refused(tmp_path_factory, task):
    folder = tmp_path_factory.getbasetemp()
    text = f"TASK = {task!r}\n{KERNELBENCH}"
    path = folder / "any.py"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    refused = None
    try:
        read = read_task(path)
    except BadInput as error:
        refused = error
    if refused is None:
        assert Task.model_validate_json(read.model_dump_json()) == read
        assert read.content_hash
    else:
        assert refused.what.startswith(f"{path}:")
        assert refused.hint


@settings(deadline=None)
@given(text=st.text())
def test_any_text_is_either_read_or_refused(tmp_path_factory, text):
    path = tmp_path_factory.getbasetemp() / "text.py"
    path.write_bytes(text.encode("utf-8", "surrogatepass"))
    with pytest.raises(BadInput):
        read_task(path)
