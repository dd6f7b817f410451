"""Whole seeds: made by torch's compiler from tasks, judged, or refused with the reason."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable
from typing import Any, NoReturn

import pytest

from kernel_smith.errors import BadInput, InternalError
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.proposers.seed import Seed, make, make_seed
from kernel_smith.proposers.seed.inside.__main__ import _answer
from kernel_smith.proposers.seed.inside.device_time import DeviceTime
from kernel_smith.proposers.seed.reference import read_reference
from kernel_smith.records import Options, Stage, Task, Variant
from kernel_smith.tasks import find_task

# The compiler warns about its own affairs.
pytestmark = pytest.mark.filterwarnings("ignore")

NORM = """
import torch

TASK = {
    "workloads": {
        "wide": {"rows": 16, "columns": 96, "groups": 2},
        "other": {"rows": 16, "columns": 96, "groups": 3},
        "tall": {"rows": 64, "columns": 12},
    },
    "variants": ["large", "strided"],
}


class Model(torch.nn.Module):
    def __init__(self, columns, groups):
        super().__init__()
        self.groups = groups
        self.layers = torch.nn.Sequential(torch.nn.Linear(columns, columns), torch.nn.GELU())
        self.register_buffer("shift", torch.randn(columns))

    def forward(self, x, pair):
        grouped = self.layers(x).unflatten(-1, (self.groups, -1))
        softened = torch.softmax(grouped, -1).flatten(-2) + self.shift
        return {"soft": softened * pair["scale"], "extreme": [softened.amax(-1), softened.sum(0)]}


def get_inputs(rows=16, columns=96, groups=2):
    return [torch.randn(rows, columns), {"scale": torch.randn(rows, 1)}]


def get_init_inputs(columns=96, groups=2):
    return [columns, groups]
"""

REFUSED = """
import torch


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(8)

    def forward(self, x):
        return {result}


def get_inputs():
    return [torch.randn(32, 8)]
"""


def build(task: Task, *workloads: str) -> Seed:
    """A seed made in this process, which saves the start of another. Who wants to know whether it
    is right asks the judge: to compare it here would compile its kernels, too."""
    # Importing the compiler warns too, which must not happen while tests are collected.
    from kernel_smith.proposers.seed.inside.build import build_seed

    chosen = workloads or [workload.name for workload in task.workloads]
    return build_seed(task, "cpu", chosen, lambda what: None, compare=False)


@pytest.mark.slow
def test_a_seed_with_parameters_and_nested_results_convinces_the_judge(
    write_task, engine: LocalEngine, quick: Options
) -> None:
    task = write_task(NORM)
    heard: list[str] = []
    seed = make_seed(task, "cpu", progress=heard.append, compare=False)
    assert (seed.backend, seed.workloads) == ("cpp", ("wide", "other", "tall"))
    assert seed.kernels > 2
    assert seed.library_calls == ("addmm",)
    assert any("wide" in what for what in heard)
    evaluation = engine.evaluate(task, seed.candidate, quick)
    assert evaluation.stage is Stage.OK, evaluation.message


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["row_max_index", pytest.param("max_pool2d", marks=pytest.mark.sweep)]
)
def test_a_seed_of_the_suite_convinces_the_judge(
    name: str, compiler: None, engine: LocalEngine, quick: Options
) -> None:
    """On its last workload: in bfloat16, or of odd sizes. The test above has several."""
    task = find_task(name)
    task = task.model_copy(update={"workloads": task.workloads[-1:]})
    seed = build(task)
    assert seed.library_calls == ()
    evaluation = engine.evaluate(task, seed.candidate, quick)
    assert evaluation.stage is Stage.OK, evaluation.message


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs Triton")
def test_a_triton_seed_convinces_the_judge(engine: LocalEngine, quick: Options) -> None:
    """In a process of its own, which may have to pretend that there is a GPU."""
    task = find_task("silu_and_mul_llm")
    assert Variant.STRIDED not in task.variants
    seed = make_seed(task, "cuda", ["small"])
    assert seed.backend == "triton"
    assert "@triton.jit" in seed.source and "XBLOCK=" in seed.source
    small = task.model_copy(update={"workloads": task.workloads[:1]})
    evaluation = engine.evaluate(small, seed.candidate, quick)
    assert evaluation.ok, evaluation.message


def test_one_workload_can_be_chosen(compiler: None, write_task) -> None:
    seed = build(write_task(NORM), "tall")
    assert seed.workloads == ("tall",)
    assert "run_tall" in seed.source and "run_wide" not in seed.source


def test_products_become_kernels_of_our_own(
    compiler: None, write_task, engine: LocalEngine, quick: Options
) -> None:
    """Where they are all there is. Elsewhere they make a second program."""
    task = write_task(REFUSED.replace("{result}", "x @ x.T"))
    seed = build(task)
    assert (seed.library_calls, seed.kernels, seed.without_library) == ((), 1, "")
    assert "multiply_32x8x32" in seed.source and "torch.mm" not in seed.source
    evaluation = engine.evaluate(task, seed.candidate, quick)
    assert evaluation.stage is Stage.OK, evaluation.message
    both = build(write_task(REFUSED.replace("{result}", "(x @ x.T).relu()")))
    assert both.library_calls == ("mm",) and "torch.mm" in both.source
    authored = both.authored_candidate
    assert authored is not None and "torch.mm" not in authored.source


def test_where_the_library_is_forbidden_products_are_ours(compiler: None, write_task) -> None:
    text = REFUSED.replace("{result}", "(x @ x.T).relu()")
    task = write_task(text).model_copy(update={"library_calls": False})
    seed = build(task)
    assert (seed.library_calls, seed.without_library, seed.notes) == ((), "", ())


def test_what_is_too_long_for_a_program_is_no_seed(
    compiler: None, write_task, monkeypatch: pytest.MonkeyPatch
) -> None:
    from kernel_smith.proposers.seed.inside import build as building

    task = write_task(REFUSED.replace("{result}", "(x @ x.T).relu()"))
    lengths = [len(build(task).source), len(build(task).without_library)]
    assert lengths[0] < lengths[1], "our kernels take more than a call of the library"
    monkeypatch.setattr(building, "MAX_SOURCE", lengths[0])
    assert build(task).without_library == ""
    monkeypatch.setattr(building, "MAX_SOURCE", lengths[0] - 1)
    with pytest.raises(BadInput, match=f"it has {lengths[0]} characters"):
        build(task)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("torch.linalg.qr(x).R", "leaves all of it to the library"),
        ("torch.rand_like(x) + x", "draws random numbers"),
        ("torch.dropout(x, 0.5, True)", "draws random numbers"),
        ("x.relu_() + 1", "changes `x` in place"),
        ("torch.sparse_coo_tensor(x)", "torch.export cannot take the model"),
        ("x.relu_().to_sparse_csr() @ x.T", "the graph of the model cannot be read"),
        ("torch.relu(x).to_sparse_csr() @ x.T", "the compiler cannot take the model: .* CSR"),
    ],
)
def test_what_cannot_be_a_seed_is_refused_with_the_reason(
    compiler: None, write_task, result: str, reason: str
) -> None:
    task = write_task(REFUSED.replace("{result}", result))
    with pytest.raises(BadInput, match=reason):
        build(task)


@pytest.mark.parametrize(
    ("result", "reason"),
    [
        ("x[x > 0] * 2", "the shape of `aten.index.Tensor`'s result in .* depends"),
        ("x + 1 if x.sum() > 0 else x", "looks at the values of a tensor"),
        ("x[: int(x.max().item())] * 2", "looks at the values of a tensor"),
    ],
)
def test_what_depends_on_values_is_refused_with_its_line_and_what_to_write(
    compiler: None, write_task, result: str, reason: str
) -> None:
    task = write_task(REFUSED.replace("{result}", result))
    with pytest.raises(BadInput, match=reason) as caught:
        build(task)
    assert "GuardOnDataDependent" not in str(caught.value)
    line = 1 + task.source[: task.source.index(result)].count("\n")
    assert f"{task.path}:{line}" in str(caught.value)
    assert "torch.where(c, a, b)" in caught.value.hint


def test_scripted_parts_are_named_with_the_remedy(compiler: None, write_task) -> None:
    text = REFUSED.replace("torch.nn.BatchNorm1d(8)", "torch.jit.script(torch.nn.Tanh())")
    with pytest.raises(BadInput, match=r"compiled by torch\.jit") as caught:
        build(write_task(text.replace("{result}", "self.norm(x)")))
    assert "leave out torch.jit.script" in caught.value.hint


@pytest.mark.parametrize("owner", ["self", "self.norm"])
def test_a_buffer_that_is_replaced_is_named(compiler: None, write_task, owner: str) -> None:
    """Though no operation writes to it."""
    text = REFUSED.replace("{result}", f"setattr({owner}, 'last', x * 2) or x + 1")
    buffer = f'{owner}.register_buffer("last", torch.zeros(32, 8))'
    name = f"{owner}.last".removeprefix("self.")
    with pytest.raises(BadInput, match=f"changes `{name}` in place"):
        build(write_task(text.replace("BatchNorm1d(8)", f"ReLU()\n        {buffer}")))


def test_a_model_that_inherits_its_forward_is_told_to_write_one() -> None:
    with pytest.raises(BadInput, match="no `forward` of its own") as caught:
        read_reference("class Model(SomebodysMLP):\n    pass\n")
    assert "return super().forward(x)" in caught.value.hint


def test_dropout_that_drops_nothing_is_not_random(compiler: None, write_task) -> None:
    task = write_task(REFUSED.replace("{result}", "torch.dropout(x * 2, 0.5, False) + 1"))
    assert build(task).kernels == 1


def test_results_of_torchs_own_kinds_keep_them(compiler: None, write_task) -> None:
    task = write_task(REFUSED.replace("{result}", "torch.max(torch.sigmoid(x) * x, dim=-1)"))
    assert "torch.return_types.max((" in build(task).source


def test_recurrent_layers_that_drop_nothing_are_not_random(compiler: None, write_task) -> None:
    text = REFUSED.replace("BatchNorm1d(8)", "LSTM(8, 8)")
    seed = build(write_task(text.replace("{result}", "torch.tanh(self.norm(x)[0] * 2) + 1")))
    assert any("rnn" in call for call in seed.library_calls)


@pytest.mark.parametrize("error", ["RuntimeError", "SystemExit"])
def test_a_task_that_fails_is_refused_with_its_line(compiler: None, write_task, error: str) -> None:
    text = REFUSED.replace("{result}", "x")
    line = text.count("\n") + 2
    with pytest.raises(BadInput, match=f"fails in line {line}: {error}: broken"):
        build(write_task(f"{text}\nraise {error}('broken')\n"))


def ask(task: Task, build: Callable[..., Seed], say: Callable[[dict[str, Any]], None]) -> None:
    request = {"task": task.model_dump(mode="json"), "minutes": 1, "device": "cpu"}
    request |= {"workloads": ["tall"], "recipe": "default", "compare": True}
    _answer(build, request, say, DeviceTime())


def test_a_task_that_ends_the_process_later_is_refused(write_task) -> None:
    said: list[dict[str, Any]] = []
    ask(write_task(NORM), lambda *_, **more: sys.exit(3), said.append)
    began, answer = said
    assert began == {"begins": True}
    assert answer["kind"] == "BadInput" and "(SystemExit: 3)" in answer["what"]


def test_a_defect_is_told_before_it_ends_the_process(write_task) -> None:
    """Else whoever ends it without a word is the task's code."""

    def fail(*_: object, **more: object) -> NoReturn:
        raise ZeroDivisionError

    task = write_task(NORM)
    said: list[dict[str, Any]] = []
    with pytest.raises(ZeroDivisionError):
        ask(task, fail, said.append)
    assert said[-1] == {"defect": True}
    assert isinstance(make._died(task, 1, "ZeroDivisionError", by_defect=True), InternalError)
    assert isinstance(make._died(task, 1, "", by_defect=False), BadInput)


@pytest.mark.slow
def test_a_compiler_that_takes_too_long_is_stopped(write_task) -> None:
    with pytest.raises(BadInput, match=r"needs more than 0\.005 minutes") as caught:
        make_seed(write_task(NORM), "cpu", minutes=0.005)
    assert "--patience" in caught.value.hint


def test_an_unknown_workload_is_refused_with_the_known_ones(write_task) -> None:
    with pytest.raises(BadInput, match="no workload 'huge'") as caught:
        make_seed(write_task(NORM), "cpu", ["huge"])
    assert "wide, other, tall" in caught.value.hint
