"""Every refusal of a task file: the place, what was wrong, and the remedy."""

import re
import sys

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.tasks import read_task

MODEL = "class Model(nn.Module):\n    def forward(self, x): return x\n"
INPUTS = "def get_inputs(rows=1, columns=2): return []\n"


def refusal(folder, text: str | bytes) -> tuple[int, str, str]:
    """The line, the complaint and the hint for a file with this content."""
    path = folder / "bad_task.py"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    with pytest.raises(BadInput) as caught:
        read_task(path)
    where, _, what = caught.value.what.removeprefix(f"{path}:").partition(": ")
    assert "expected" in what
    return int(where), what, caught.value.hint


def settings_refusal(folder, settings: str, inputs: str = INPUTS) -> tuple[int, str, str]:
    return refusal(folder, f"TASK = {{\n{settings}\n}}\n{MODEL}{inputs}")


def test_a_missing_file_is_named(tmp_path):
    with pytest.raises(BadInput, match=r"none\.py: no such file, expected a task file") as caught:
        read_task(tmp_path / "none.py")
    assert "kernel-smith tasks list" in caught.value.hint


def test_a_folder_is_not_a_file(tmp_path):
    with pytest.raises(BadInput, match="this is a folder") as caught:
        read_task(tmp_path)
    assert str(tmp_path / "task.py") in caught.value.hint


def test_an_unreadable_file_says_why(tmp_path):
    loop = tmp_path / "loop.py"
    loop.symlink_to(loop)
    with pytest.raises(BadInput, match="cannot be read"):
        read_task(loop)


def test_a_file_without_end_is_refused_before_memory_is_full(tmp_path):
    link = tmp_path / "weights.py"
    with link.open("wb") as file:
        file.truncate(1 << 40)  # takes no room
    with pytest.raises(BadInput, match="longer than 64 MiB") as caught:
        read_task(link)
    assert "Model.__init__" in caught.value.hint


def test_other_encodings_are_refused_at_their_line(tmp_path):
    line, what, hint = refusal(tmp_path, b"x = 1\ny = '\xe9'\n")
    assert (line, hint) == (2, "save the file as UTF-8")
    assert "0xe9" in what


@pytest.mark.parametrize(
    ("text", "line"),
    [("x = 1\ndef f(:\n", 2), ("x = (\n", 1), ("a\0b", 1), ("x = " + "-" * 20000 + "1", 1)],
)
def test_syntax_errors_have_their_line(tmp_path, text, line):
    assert refusal(tmp_path, text)[0] == line


def test_a_syntax_error_names_the_version_that_reads_the_file(tmp_path):
    """Files for newer versions are common, and nothing in them is wrong."""
    _, what, hint = refusal(tmp_path, "class Box[T = int]: ...\n")
    version = ".".join(map(str, sys.version_info[:2]))
    assert what.endswith(f"expected Python {version}")
    assert f"newer than {version}" in hint


@pytest.mark.parametrize(
    ("classes", "hint"),
    [
        ("", "define `class Model(torch.nn.Module)`"),
        ("class model(nn.Module): pass", "rename `class model` on line 2 to `Model`"),
        ("class MyModel(nn.Module): pass", "rename `class MyModel` on line 2 to `Model`"),
        ("class Net(nn.Module): pass", "rename `class Net` on line 2 to `Model`"),
        ("class Config: pass", "define `class Model(torch.nn.Module)`"),
        ("class ModelNew(nn.Module): pass", "`class ModelNew` on line 2 is what a candidate"),
    ],
)
def test_a_missing_model_is_looked_for_under_similar_names(tmp_path, classes, hint):
    line, what, given = refusal(tmp_path, f"from torch import nn\n{classes}\n{INPUTS}")
    assert line == 1
    assert "no `class Model`" in what
    assert hint in given


@pytest.mark.parametrize(
    "model",
    [
        "class Model(nn.Module): pass",
        "class Base(torch.nn.Module): pass\nclass Model(Base): pass",
        "class Model(Model): pass",
        "class Model(nn.Module):\n    def helper(self):\n        def forward(self): pass",
    ],
)
def test_a_model_without_forward_is_refused(tmp_path, model):
    line, what, hint = refusal(tmp_path, f"{model}\n{INPUTS}")
    assert line == 1 + model.split("class Model")[0].count("\n")
    assert "no `forward`" in what
    assert "def forward(self" in hint


@pytest.mark.parametrize(
    ("function", "hint"),
    [
        ("", "define `def get_inputs()`"),
        ("def get_init_inputs(): return []", "define `def get_inputs()`"),
        ("def get_input(): return []", "did you mean `get_input`?"),
        ("class A:\n    def get_inputs(self): return []", "define `def get_inputs()`"),
    ],
)
def test_get_inputs_is_required(tmp_path, function, hint):
    _, what, given = refusal(tmp_path, f"{MODEL}{function}\n")
    assert "no function `get_inputs`" in what
    assert hint in given


@pytest.mark.parametrize(
    ("settings", "line", "shown"),
    [
        ('"family": FAMILY', 2, "`FAMILY` is not a literal"),
        ('"family": f"a{1}"', 2, "is not a literal"),
        ('"workloads": {\n"w": {\n"rows": 4 * 1024}}', 4, "`4 * 1024` is not a literal"),
        ('"workloads": {\n"w": dict(rows=1)}', 3, "`dict(rows=1)` is not a literal"),
        ('"admit":\n ["a",\n name]', 4, "`name` is not a literal"),
        ('"family": "a",\n**OTHER', 3, "not a string literal"),
        ('"family": "a",\nKEY: 1', 3, "not a string literal"),
        ('"family": "a",\n7: 1', 3, "not a string literal"),
        ('"family": "a",\n"family": "b"', 3, "has the key `family` twice"),
        ('"family": "\\ud800"', 2, "lone surrogate"),
        ('"workloads": {"w":\n{"rows": ["\\ud800"]}}', 3, "lone surrogate"),
    ],
)
def test_what_is_not_literal_is_shown_at_its_line(tmp_path, settings, line, shown):
    at, what, _ = settings_refusal(tmp_path, settings)
    assert at == line
    assert shown in what


def test_the_dictionary_itself_must_be_one(tmp_path):
    assert refusal(tmp_path, f"\nTASK = [1]\n{MODEL}{INPUTS}")[:1] == (2,)
    line, what, _ = refusal(tmp_path, f"\nTASK = make()\n{MODEL}{INPUTS}")
    assert line == 2
    assert "`make()` is not a literal" in what


@pytest.mark.parametrize(
    "change",
    [
        "TASK['family'] = 'x'",
        "TASK = {}",
        "TASK |= {}",
        "del TASK['family']",
        "if True:\n    TASK = {}",
        "TASK, other = {}, 1",
    ],
)
def test_changing_the_dictionary_later_is_refused(tmp_path, change):
    text = f"TASK = {{}}\n{MODEL}{INPUTS}"
    line, what, hint = refusal(tmp_path, text + change)
    assert line == text.count("\n") + 1 + change.count("\n")
    assert "TASK is changed here" in what
    assert "one literal" in hint


def test_a_surrogate_in_the_docstring_is_refused(tmp_path):
    assert "lone surrogate" in refusal(tmp_path, f'"\\ud800"\n{MODEL}{INPUTS}')[1]


def test_an_unknown_key_suggests_the_closest_one(tmp_path):
    line, what, hint = settings_refusal(tmp_path, '"family": "a",\n"workload": {}')
    assert line == 3
    assert "unknown key `workload`" in what
    assert "`library_calls`" in what
    assert hint == "did you mean `workloads`?"
    assert settings_refusal(tmp_path, '"zzz": 1')[2] == "remove the key"


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ('"name": 3', "a string"),
        ('"name": " "', "a string that is not empty"),
        ('"family": None', "a string"),
        ('"description": ["a"]', "a string"),
        ('"library_calls": 1', "`True` or `False`"),
        ('"library_calls": "no"', "`True` or `False`"),
        ('"variants": "large"', "a list of names"),
        ('"admit": {"constant-output": True}', "a list of names"),
        ('"workloads": ["w"]', "a dictionary"),
        ('"workloads": {}', "at least one workload"),
        ('"tolerance": 1e-3', "a dictionary"),
        ('"tolerance": {"rtol": 1e-3}', "both `rtol` and `atol`"),
        ('"starts": "start.py"', "a dictionary"),
    ],
)
def test_wrong_types_are_reported_at_their_key(tmp_path, settings, expected):
    line, what, hint = settings_refusal(tmp_path, settings)
    assert line == 2
    assert expected in what
    assert hint


@pytest.mark.parametrize(
    ("inner", "expected"),
    [
        ('"workloads": {\n"w": 3}', "a dictionary"),
        ('"workloads": {\n"a b": {}}', "letters, digits"),
        ('"workloads": {\n"": {}}', "letters, digits"),
        ('"workloads": {"w": {\n"weight": 0}}', "a finite number above zero"),
        ('"workloads": {"w": {\n"weight": "2"}}', "a finite number above zero"),
        ('"workloads": {"w": {\n"weight": True}}', "a finite number above zero"),
        ('"workloads": {"w": {\n"weight": 1e999}}', "a finite number above zero"),
        ('"workloads": {"w": {\n"weight": 1' + "0" * 400 + "}}", "a finite number above zero"),
        ('"workloads": {"w": {\n"rows": 1e999}}', "a finite number"),
        ('"workloads": {"w": {\n"rows": b"x"}}', "numbers, strings"),
        ('"workloads": {"w": {\n"rows": {1, 2}}}', "numbers, strings"),
        ('"workloads": {"w": {\n"rows": {1: 2}}}', "numbers, strings"),
        ('"workloads": {"w": {\n"rows": [2j]}}', "numbers, strings"),
        ('"tolerance": {"atol": 0,\n"rtol": -1.0}', "a finite number, zero or more"),
        ('"tolerance": {"atol": 0,\n"rtoll": 1.0}', "`rtol` and `atol`"),
        ('"starts": {\n"cpp": 3}', "a string"),
    ],
)
def test_wrong_types_inside_are_reported_at_the_inner_key(tmp_path, inner, expected):
    line, what, _ = settings_refusal(tmp_path, inner)
    assert line == 3
    assert expected in what


@pytest.mark.parametrize(
    ("settings", "choices", "hint"),
    [
        ('"precision": "fp32"', ["strict", "tf32", "bf16", "fp16"], "write `strict` for"),
        ('"precision": 16', ["strict"], "write `strict` for"),
        ('"variants": ["large", "spike"]', ["spikes", "strided"], "did you mean `spikes`?"),
        ('"variants": ["?"]', ["ties"], "choose one of"),
        ('"admit": ["constant_output"]', ["mutates-inputs"], "did you mean `constant-output`?"),
    ],
)
def test_unknown_names_list_the_choices(tmp_path, settings, choices, hint):
    line, what, given = settings_refusal(tmp_path, settings)
    assert line == 2
    assert all(f"`{choice}`" in what for choice in choices)
    assert given.startswith(hint)


def test_a_workload_argument_that_get_inputs_does_not_accept(tmp_path):
    settings = '"workloads": {"w": {"rows": 1,\n"column": 2}}'
    line, what, hint = settings_refusal(tmp_path, settings)
    assert line == 3
    assert "workload `w` gives `column`" in what
    assert "`rows`, `columns`" in what
    assert hint == "did you mean `columns`?"


@pytest.mark.parametrize(
    "parameters", ["", "*args", "rows=1, /"], ids=["none", "positional", "positional-only"]
)
def test_parameters_that_take_no_keyword_accept_none(tmp_path, parameters):
    inputs = f"def get_inputs({parameters}): return []\n"
    _, what, hint = settings_refusal(tmp_path, '"workloads": {"w": {"rows": 1}}', inputs)
    assert "gives `rows`, expected what `get_inputs` accepts: no keyword" in what
    assert "add `rows` to the parameters" in hint


def test_required_parameters_need_a_workload(tmp_path):
    line, what, hint = refusal(tmp_path, f"{MODEL}\ndef get_inputs(n, *, m): return []\n")
    assert line == 4
    assert "requires `n`, `m` but no workload is defined" in what
    assert '"workloads": {"default": {"n": ..., "m": ...}}' in hint


def test_every_workload_gives_what_is_required(tmp_path):
    settings = '"workloads": {\n"a": {"n": 1},\n"b": {}}'
    line, what, hint = settings_refusal(tmp_path, settings, "def get_inputs(n): return []\n")
    assert line == 4
    assert "requires `n` but workload `b` is silent" in what
    assert 'add "n": ... to the workload "b"' in hint


def test_get_init_inputs_gets_what_it_requires(tmp_path):
    inputs = INPUTS + "def get_init_inputs(size): return []\n"
    line, what, _ = settings_refusal(tmp_path, '"workloads": {\n"w": {"rows": 2}}', inputs)
    assert line == 3
    assert "`get_init_inputs` requires `size`" in what


def test_parameters_by_position_only_cannot_be_given(tmp_path):
    line, what, hint = refusal(tmp_path, f"{MODEL}def get_inputs(n, /): return []\n")
    assert line == 3
    assert "by position only" in what
    assert "`/`" in hint


def test_a_required_parameter_called_weight_clashes_with_ours(tmp_path):
    inputs = "def get_inputs(weight): return []\n"
    _, what, hint = settings_refusal(tmp_path, '"workloads": {"w": {"weight": 2}}', inputs)
    assert "requires `weight`" in what
    assert hint == "rename the parameter"


@pytest.mark.parametrize("start", ["none.py", "a\\0b", "x" * 400])
def test_a_missing_start_is_reported_with_its_path(tmp_path, start):
    line, what, hint = settings_refusal(tmp_path, f'"starts": {{\n"cpp": "{start}"}}')
    assert line == 3
    assert re.search("starting kernel .* is missing", what)
    assert "remove `cpp` from `starts`" in hint
