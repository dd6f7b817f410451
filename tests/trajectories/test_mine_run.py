"""Trying classes out under confinement, and writing tasks."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.tasks import read_task
from kernel_smith.trajectories.mine import MineSettings, mine, run
from kernel_smith.trajectories.mine.closure import Extract
from kernel_smith.trajectories.mine.guesses import Code, guess, guess_field
from kernel_smith.trajectories.mine.plan import Plan
from kernel_smith.trajectories.mine.probe import Prober, _plan
from kernel_smith.trajectories.mine.refusal import Refused
from kernel_smith.trajectories.mine.render import task_text


@pytest.fixture(scope="module")
def prober() -> Iterator[Prober]:
    with Prober(2) as prober:
        yield prober


def extract_of(body: str, *fields: str, imports: tuple[str, ...] = ()) -> Extract:
    name = body[body.rindex("class ") :].split("(")[0].removeprefix("class ")
    head = ("import torch", "from torch import nn", "import torch.nn.functional as F")
    return Extract(name, (*head, *imports), body, "m.py", 7, "A part.", fields, {})


def simple(expression: str, init: str = "pass", arguments: str = "") -> Extract:
    return extract_of(
        f"class A(nn.Module):\n    def __init__(self{arguments}):\n"
        f"        super().__init__()\n        {init}\n"
        f"    def forward(self, x):\n        return {expression}"
    )


def why(prober: Prober, extract: Extract) -> str:
    with pytest.raises(Refused) as caught:
        prober.find_plan(extract)
    return caught.value.reason


def test_arguments_are_guessed_so_that_they_fit_each_other() -> None:
    heads, width = guess("num_heads", "int", ""), guess("dim", "int", "")
    assert isinstance(heads, int) and isinstance(width, int) and width % heads == 0
    assert guess("eps", "float", "") == 1e-5
    assert guess("use_bias", "bool", "") is False
    assert guess("norm_layer", "", "nn.Conv2d(") == Code("batch_norm")
    assert guess("norm_layer", "", "nn.Linear(") == Code("layer_norm")
    assert guess("window_size", "Tuple[int, int]", "") == [4, 4]
    assert guess_field("hidden_act", {}) == "gelu"
    assert guess_field("hidden_size", {"hidden_size": 4096}) == width
    assert guess_field("norm_kind", {"norm_kind": "pre"}) == "pre"


@pytest.mark.slow
def test_images_sequences_indices_and_configurations_find_their_inputs(prober: Prober) -> None:
    image = prober.find_plan(
        simple("self.c(x)", "self.c = nn.Conv2d(channels, 8, 3)", ", channels")
    )
    assert image.inputs[0].shape == ("batch", 64, "height", "width")
    words = prober.find_plan(
        extract_of(
            "class E(nn.Embedding):\n    def __init__(self, config):\n"
            "        super().__init__(config.vocab_size, config.hidden_size)\n"
            "    def forward(self, input_ids):\n        return super().forward(input_ids)",
            "vocab_size",
            "hidden_size",
        )
    )
    assert (words.inputs[0].kind, words.inputs[0].high) == ("index", 1000)
    assert words.config == {"vocab_size": 1000, "hidden_size": 64}
    for plan in (image, words):
        small, large = plan.workloads["small"], plan.workloads["large"]
        assert small["batch"] == 2 and large != small


def test_unset_and_constant_parameters_are_drawn(prober: Prober) -> None:
    extract = simple(
        "self.n(x) @ self.w",
        "self.n = nn.LayerNorm(dim); self.w = nn.Parameter(torch.empty(dim, dim))",
        ", dim",
    )
    plan = prober.find_plan(extract)
    assert plan.unset == ("w",) and plan.constant
    text = task_text(extract, plan, "matmul", "made")
    assert "get_parameter('w')" in text and "randn_like(parameter)" in text


@pytest.mark.parametrize(
    ("expression", "reason"),
    [
        ("torch.rand_like(x)", "not-deterministic"),
        ("torch.zeros(3) + 1", "ignores-inputs"),
        ("x.transpose(0, 1)", "does-nothing"),
        ("x / 0", "not-finite"),
        ("x.mul_(2) + 1", "changes-inputs"),
        ("object()", "result-not-tensors"),
        ("undefined(x)", "no-inputs-found"),
    ],
)
def test_what_is_no_task_is_refused(prober: Prober, expression: str, reason: str) -> None:
    assert why(prober, simple(expression)) == reason


def test_a_constructor_that_fails_is_named(prober: Prober) -> None:
    assert why(prober, simple("x + 1", "raise ValueError('no')")) == "constructor-fails"


@pytest.mark.slow
def test_an_infinite_loop_is_ended_and_the_next_class_is_tried(prober: Prober) -> None:
    loop = simple("x", "\n        while True: pass")
    assert why(prober, loop) == "timeout"
    assert prober.find_plan(simple("x.exp()")).inputs


def test_memory_is_bounded(prober: Prober) -> None:
    reason = why(prober, simple("x + 1", "self.b = torch.ones(1 << 34)"))
    assert reason in ("constructor-fails", "timeout", "crashed")


def test_files_and_networks_are_out_of_reach(prober: Prober, tmp_path: Path) -> None:
    """The text is refused before it gets so far; here it gets there all the same."""
    target = tmp_path / "harm"
    imports = ("import socket", "import subprocess")
    for harm in (
        f"open({str(target)!r}, 'w')",
        "socket.create_connection(('127.0.0.1', 1), 1)",
        f"subprocess.run(['touch', {str(target)!r}], check=True)",
    ):
        body = simple("x + 1", harm).body
        with pytest.raises(Refused) as caught:
            prober.find_plan(extract_of(body, imports=imports))
        assert caught.value.reason in ("constructor-fails", "crashed")
    assert not target.exists()


def test_a_process_that_kills_itself_is_data(prober: Prober) -> None:
    assert why(prober, extract_of(simple("x", "os._exit(0)").body, imports=("import os",)))
    assert prober.find_plan(simple("x.exp()")).inputs


@pytest.mark.parametrize(
    "change",
    [
        {"init": {"x=1); import os #": 1}},
        {"code": {"act": "__import__('os')"}},
        {"inputs": [{"kind": "float", "shape": ["batch); os.remove("]}]},
    ],
)
def test_a_forged_plan_is_refused(change: dict[str, Any]) -> None:
    honest: dict[str, Any] = {"inputs": [{"kind": "float", "shape": ["batch", 4]}]}
    assert _plan({"plan": honest}).inputs
    with pytest.raises(Refused) as caught:
        _plan({"plan": honest | change})
    assert caught.value.reason == "implausible-plan"


def test_texts_of_a_plan_stay_texts(write_task: Any) -> None:
    """Whatever a docstring or a value holds, the file says the same and reads as a task."""
    evil = 'x"""\nimport os\n"""\\'
    extract = Extract("A", ("import torch",), "class A(torch.nn.Module):\n    def forward(self, x):"
                      "\n        return x", "m.py", 1, evil, (), {})  # fmt: skip
    plan = Plan.model_validate(
        {
            "init": {"a": evil},
            "inputs": [{"kind": "float", "shape": ["batch"]}],
            "workloads": {"small": {"batch": 2}},
        }
    )
    task = write_task(task_text(extract, plan, "f", "made"))
    assert "\nimport os" not in task.source


LIBRARY = """
import torch
from torch import nn

def squash(x):
    return torch.tanh(x)

class Gate(nn.Module):
    '''Scales by a squashed projection.'''
    def __init__(self, dim, bias=True):
        super().__init__()
        self.proj = nn.Linear(dim, dim, bias=bias)
    def forward(self, x):
        return x * squash(self.proj(x))

class SameGate(nn.Module):
    def __init__(self, dim, bias=True):
        super().__init__()
        self.proj = nn.Linear(dim, dim, bias=bias)
    def forward(self, y):
        return y * squash(self.proj(y))

class AlmostConstant(nn.Module):
    def forward(self, x):
        return 1000 + 1e-4 * x
"""


PLAN = Plan.model_validate(
    {
        "init": {"dim": 4, "bias": True},
        "inputs": [{"kind": "float", "shape": ["batch", 4]}],
        "workloads": {"small": {"batch": 2}, "large": {"batch": 4}},
    }
)


@pytest.fixture
def gates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MineSettings:
    """Tasks that are not tried out, but written."""
    monkeypatch.setattr(Prober, "find_plan", lambda prober, extract: PLAN)
    (tmp_path / "gates.py").write_text(LIBRARY)
    return MineSettings([str(tmp_path / "gates.py")], tmp_path / "tasks", admission=False)


def test_a_folder_of_tasks_that_vanishes_is_bad_input(gates: MineSettings) -> None:
    with pytest.raises(BadInput, match="tasks: cannot be written") as caught:
        mine(gates, lambda what: shutil.rmtree(gates.folder, ignore_errors=True))
    assert "-o FOLDER" in caught.value.hint


def test_what_lies_in_the_folder_of_tasks_is_not_overwritten(gates: MineSettings) -> None:
    (gates.folder / "gates_gate.py").mkdir(parents=True)
    (gates.folder / "gates_gate_2.py").write_bytes(b"\xff")
    (gates.folder / "mined.jsonl").write_bytes(b"\xff\n")
    assert set(mine(gates, lambda what: None).tasks) == {"gates_gate_3", "gates_almost_constant"}
    assert (gates.folder / "gates_gate_2.py").read_bytes() == b"\xff"


def test_a_folder_becomes_tasks_once(
    tmp_path: Path, engine: LocalEngine, prober: Prober, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Shared(LocalEngine):
        def _ask(self, request: dict[str, Any], progress: Any) -> dict[str, Any]:
            return engine._ask(request, progress)

    monkeypatch.setattr(run, "LocalEngine", Shared)
    monkeypatch.setattr(run, "Prober", lambda seconds: nullcontext(prober))
    (tmp_path / "made").mkdir()
    (tmp_path / "made" / "__init__.py").write_text("raise SystemExit('never imported')\n")
    (tmp_path / "made" / "gates.py").write_text(LIBRARY)
    settings = MineSettings([str(tmp_path / "made")], tmp_path / "tasks")
    summary = mine(settings, lambda what: None)
    assert (summary.found, summary.standalone, summary.ran, summary.written) == (3, 2, 2, 1)
    assert summary.refusals == {"duplicate": 1, "not-admitted": 1}
    task = read_task(tmp_path / "tasks" / "made_gate.py")
    assert [w.name for w in task.workloads] == ["large", "small"]
    assert (task.family, summary.tasks["made_gate"].file) == ("fused-matmul", "made/gates.py")
    assert "Scales by a squashed projection." in task.description
    assert engine.examine(task) == []
    ledger = tmp_path / "tasks" / "mined.jsonl"
    before = ledger.read_text()
    ledger.write_text(before + '{"cut off')
    reports: list[str] = []
    again = mine(settings, reports.append)
    assert (again.refusals, again.tasks) == (summary.refusals, summary.tasks)
    assert ledger.read_text() == before and not any("tasks;" in what for what in reports)
    assert json.loads((tmp_path / "tasks" / "mined.json").read_text())["written"] == 1
