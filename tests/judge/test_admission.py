"""Tasks that cannot tell right from wrong are refused, by name and with the remedy."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.judge.inputs.admission import Found, admit, examine
from kernel_smith.evaluation.judge.inputs.budget import Budget
from kernel_smith.evaluation.judge.inputs.first_look import look_at
from kernel_smith.evaluation.judge.inputs.reference import Reference
from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.records import Admission, Task
from kernel_smith.records.admission import FINDINGS

WriteTask = Callable[..., Task]

BUDGET = Budget(kept=256 << 20, at_once=16 << 20, free=1 << 30)


def source(
    forward: str, inputs: str = "[torch.randn(64, 32)]", settings: str = "{}", arguments: str = "x"
) -> str:
    return f"""
import torch

TASK = {settings}

class Model(torch.nn.Module):
    def forward(self, {arguments}):
        {forward}

def get_inputs():
    return {inputs}
"""


BAD = {
    Admission.CONSTANT_OUTPUT: [
        source("return torch.full((64,), float(x[0, 0]))"),
        source("return (x > 100).float() + 1"),
        source("m = x.max(-1, keepdim=True).values; return torch.ones_like(x - m)"),
    ],
    Admission.ZERO_OUTPUT: [
        source("return torch.relu(x - 100)"),
        source("m = x.max(-1, keepdim=True).values; return m - m.mean(-1, keepdim=True)"),
        source("return (x > 100).sum(-1)"),
    ],
    Admission.INPUT_INDEPENDENT: [
        source("return torch.arange(8.0) + 0 * x[0, 0]"),
        source("return torch.arange(8)"),
        source("return torch.arange(8.0)", "[]", arguments=""),
    ],
    Admission.SEED_INDEPENDENT: [
        source("return x * 2", "[torch.arange(12.0)]"),
        source("return x * 2", "[torch.randn(8, generator=torch.Generator().manual_seed(1))]"),
    ],
    Admission.NON_FINITE: [
        source("return x / 0"),
        source("return x.sqrt()"),
        source("return (x, x.log())"),
    ],
    Admission.ACCEPTS_ZEROS: [
        source("return torch.relu(x - 100)"),
        source("return x", settings='{"tolerance": {"rtol": 0, "atol": 100}}'),
        # A few huge elements, at whose scale all others vanish.
        source("return torch.exp(6 * x)"),
    ],
    Admission.ACCEPTS_MEAN: [
        # Nearly constant: whoever knows the distribution knows the answer.
        source("return 1 + x * 1e-6"),
        source("return torch.softmax(x * 1e-6, -1)"),
        # A scalar loss over many elements concentrates at its expectation.
        source("return (x * x).mean()", "[1 + torch.rand(100_000) * 1e-3]"),
        source("return x.mean(), x.max()", "[5 + torch.rand(100_000) * 0.01]"),
        source("return x", settings='{"tolerance": {"rtol": 2, "atol": 9}}'),
    ],
    Admission.RANDOM_REFERENCE: [
        source("return torch.nn.functional.dropout(x)"),
        source("return x + torch.randn_like(x)"),
        source("return torch.bernoulli(torch.sigmoid(x))"),
    ],
    Admission.MUTATES_INPUTS: [
        source("return x.mul_(2)"),
        source("y = x * 2; x.zero_(); return y"),
        source(
            "xs.append(xs[0]); xs[1].add_(1); return xs[0] * 2",
            "[[torch.randn(8)] * 2]",
            arguments="xs",
        ),
    ],
}

GOOD = [
    source("return torch.softmax(x, -1)"),
    source("return x.argmax(-1)"),
    source("return x > 0"),
    source("return x.sum()"),
    source("return (x * x).mean()", "[torch.randn(10_000)]"),
    source("return x, x.argmax(-1), x.sum()"),
    source("return torch.fft.fft(x)"),
    source("return x.half()"),
    source("return {'a': [x * 2]}"),
    source("return x[:, :0], x * 2"),
    source("assert x.dtype == torch.float32; return x * 2"),
    source(
        "return torch.where(m, x, 0.0)", "[torch.randn(99), torch.rand(99) > 0.5]", arguments="x, m"
    ),
    source("return x[i]", "[torch.randn(99, 4), torch.randint(99, (7,))]", arguments="x, i"),
]


def findings(task: Task) -> set[Admission]:
    return {found.finding for found in examined(task)}


def examined(task: Task) -> list[Found]:
    reference, (workload,) = Reference(task), task.workloads
    return examine(reference, workload, BUDGET, look_at(reference, workload, BUDGET)).found


def try_to_admit(task: Task, *also: Admission) -> None:
    reference = Reference(task)
    stand_in: Any = SimpleNamespace(
        task=task,
        reference=reference,
        platform=SimpleNamespace(budget=lambda: BUDGET),
        look=lambda workload: look_at(reference, workload, BUDGET),
    )
    admit(cast(Bench[Any], stand_in), also)


@pytest.mark.parametrize(
    ("finding", "text"),
    [(finding, text) for finding, texts in BAD.items() for text in texts],
    ids=lambda value: value.value if isinstance(value, Admission) else None,
)
def test_each_flaw_is_found_by_name(write_task: WriteTask, finding: Admission, text: str) -> None:
    task = write_task(text)
    assert finding in findings(task)
    with pytest.raises(BadInput) as caught:
        try_to_admit(task)
    assert str(task.path) in caught.value.what
    assert f"workload default: {finding.value}: {FINDINGS[finding].sentence}" in caught.value.what
    assert f"--admit {finding.value}" in caught.value.hint


def test_every_finding_can_be_provoked_and_has_a_sentence() -> None:
    assert set(BAD) == set(Admission) == set(FINDINGS)


@pytest.mark.parametrize("text", GOOD)
def test_sound_tasks_have_no_findings(write_task: WriteTask, text: str) -> None:
    assert findings(write_task(text)) == set()


def test_findings_that_somebody_agreed_to_do_not_count(write_task: WriteTask) -> None:
    text = source("return x.mul_(2)")
    task = write_task(text)
    assert findings(task) == {Admission.MUTATES_INPUTS}
    try_to_admit(task, Admission.MUTATES_INPUTS)
    agreed = text.replace("TASK = {}", 'TASK = {"admit": ["mutates-inputs"]}')
    try_to_admit(write_task(agreed, name="agreed"))
    with pytest.raises(BadInput):
        try_to_admit(task, Admission.ZERO_OUTPUT)


def test_only_findings_that_nobody_agreed_to_are_named(write_task: WriteTask) -> None:
    task = write_task(source("return torch.relu(x - 100)"))
    with pytest.raises(BadInput) as caught:
        try_to_admit(task, Admission.ACCEPTS_ZEROS)
    assert "zero-output" in caught.value.what
    assert "accepts-zeros" not in caught.value.what
    assert "accepts-zeros" not in caught.value.hint


def test_the_flawed_workload_is_named(write_task: WriteTask) -> None:
    task = write_task("""
import torch

TASK = {"workloads": {"fine": {"shift": 0}, "dead": {"shift": -100}}}

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x)

def get_inputs(shift):
    return [torch.randn(64) + shift]
""")
    with pytest.raises(BadInput) as caught:
        try_to_admit(task)
    assert "workload dead: zero-output" in caught.value.what
    assert "workload fine" not in caught.value.what


def test_each_finding_is_listed_once(write_task: WriteTask) -> None:
    task = write_task(source("return torch.relu(x - 100), torch.relu(x - 100)"))
    found = examined(task)
    assert len(found) == len(set(found))
    assert all(isinstance(item, Found) for item in found)


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        ("raise ValueError('wrong shapes')", "Model.forward raised ValueError: wrong shapes"),
        ("return x @ x", "Model.forward raised RuntimeError"),
        ("return undefined", "Model.forward raised NameError"),
    ],
)
def test_a_reference_that_raises_is_the_authors_error(
    write_task: WriteTask, forward: str, words: str
) -> None:
    task = write_task(source(forward))
    with pytest.raises(BadInput) as caught:
        findings(task)
    assert f"{task.path}:8: " in caught.value.what, "the line of forward that raised"
    assert words in caught.value.what
    assert "kernel-smith tasks check" in caught.value.hint


def test_a_forward_that_takes_other_arguments_is_the_authors_error(write_task: WriteTask) -> None:
    task = write_task(source("return x", "[torch.randn(3), torch.randn(3)]"))
    with pytest.raises(BadInput, match=r"Model\.forward raised TypeError"):
        findings(task)


@pytest.mark.parametrize(
    ("forward", "words"),
    [
        ("return None", "returned None"),
        ("return ()", "returned no numbers"),
        ("return x[:0], 'text'", "returned no numbers"),
        ("return x, {1, 2}", "returned a builtins.set"),
        ("return {'a': [x, object()]}", "returned a builtins.object"),
    ],
)
def test_results_that_cannot_be_compared_are_refused(
    write_task: WriteTask, forward: str, words: str
) -> None:
    """Every answer would be right there."""
    with pytest.raises(BadInput, match=words) as caught:
        findings(write_task(source(forward)))
    assert "return tensors" in caught.value.hint


def test_results_whose_sizes_depend_on_values_are_refused(write_task: WriteTask) -> None:
    with pytest.raises(BadInput, match=r"Model\.forward returns tensors of other shapes"):
        findings(write_task(source("return x[x > 0]")))


def test_sizes_that_depend_on_the_seed_are_refused(write_task: WriteTask) -> None:
    task = write_task(source("return x", "[torch.randn(int(torch.randint(1, 10**5, ())))]"))
    with pytest.raises(BadInput, match="other shapes for another seed") as caught:
        findings(task)
    assert "workloads" in caught.value.hint
