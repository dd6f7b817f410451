"""What counts as right: measured against the oracle, at the scale and precision of the task."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.evaluation.judge.inputs.reference import (
    InputSet,
    Reference,
    Result,
)
from kernel_smith.evaluation.judge.values import comparison as comparison_module
from kernel_smith.evaluation.judge.values.accuracy import (
    Bounds,
    Expected,
    expect,
    precision_rtol,
    relative_error,
    scale_of,
)
from kernel_smith.evaluation.judge.values.comparison import (
    Comparison,
    compare,
    plainly_right,
)
from kernel_smith.evaluation.judge.values.mantissa import round_mantissa
from kernel_smith.evaluation.judge.values.survey import histogram, survey
from kernel_smith.records import Reason, Task, Tolerance, Workload
from kernel_smith.tasks import read_task

WriteTask = Callable[..., Task]

MATMUL = """
import torch

TASK = {"precision": "PRECISION"}

class Model(torch.nn.Module):
    def forward(self, a, b):
        return a @ b

def get_inputs():
    return [torch.randn(48, 256), torch.randn(256, 32)]
"""

# The scale depends on the data, as it does in dynamic quantisation.
QUANTISE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        scale = x.abs().amax(dim=-1, keepdim=True) / 127
        return torch.round(x / scale).to(torch.int8)

def get_inputs():
    return [torch.randn(64, 512)]
"""


@dataclass(frozen=True)
class Case:
    """One task, one draw of its inputs, and the right answer to them."""

    reference: Reference
    workload: Workload
    inputs: InputSet
    expected: Expected

    @classmethod
    def of(cls, task: Task, seed: int = 1) -> Case:
        reference = Reference(task)
        (workload,) = task.workloads
        inputs = reference.draw(workload, seed)
        return cls.on(reference, workload, inputs)

    @classmethod
    def on(cls, reference: Reference, workload: Workload, inputs: InputSet) -> Case:
        extra = precision_rtol(reference, workload, inputs)
        return cls(reference, workload, inputs, expect(reference, workload, inputs, extra))

    @property
    def right(self) -> list[torch.Tensor]:
        return [t.clone() for t in self.expected.reference.tensors]

    def judge(self, *answers: torch.Tensor) -> Comparison:
        return compare(list(answers), self.expected, self.reference, self.workload, self.inputs)


@pytest.fixture
def case(write_task: WriteTask) -> Callable[[str], Case]:
    return lambda source: Case.of(write_task(source))


@pytest.fixture(scope="module")
def matmuls(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """The same multiplication under every precision policy."""
    folder = tmp_path_factory.mktemp("matmul")
    cases = {}
    for precision in ("strict", "tf32", "bf16", "fp16"):
        path = folder / f"{precision}.py"
        path.write_text(MATMUL.replace("PRECISION", precision))
        cases[precision] = Case.of(read_task(path))
    return cases


def function(expression: str, inputs: str = "torch.randn(16, 64)", settings: str = "{}") -> str:
    return f"""
import torch

TASK = {settings}

class Model(torch.nn.Module):
    def forward(self, x):
        return {expression}

def get_inputs():
    return [{inputs}]
"""


# ---------------------------------------------------------------- right answers


@pytest.mark.parametrize(
    "expression",
    [
        "torch.softmax(x, -1)",
        "x.sum(0)",
        "x @ x.T",
        "torch.cumsum(x, 0)",
        "(x.argmax(-1), x.max())",
        "x > 0",
        "torch.fft.fft(x)",
        "[x.half(), x.double()]",
        "x[:, :0]",
        "float(x[0, 0])",
    ],
)
def test_the_references_own_answer_is_right(case: Callable[[str], Case], expression: str) -> None:
    found = case(function(expression))
    comparison = found.judge(*found.right)
    assert comparison.reason is None
    assert comparison.worst is None
    assert plainly_right(found.right, found.expected)


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_the_oracles_answer_rounded_to_the_dtype_is_right(
    case: Callable[[str], Case], dtype: str
) -> None:
    found = case(function("torch.softmax(x, -1)", f"torch.randn(8, 33).to(torch.{dtype})"))
    rounded = [t.to(getattr(torch, dtype)) for t in found.expected.oracle]
    assert found.judge(*rounded).reason is None


def test_another_order_of_summation_is_right(case: Callable[[str], Case]) -> None:
    found = case(function("x.sum(-1)", "torch.randn(64, 10_000)"))
    (x,) = found.inputs.tensors
    sequential = torch.zeros(64)
    for part in x.split(100, dim=-1):
        sequential += part.flip(-1).sum(-1)
    assert found.judge(sequential).reason is None


def test_comparing_leaves_the_answer_as_it_was(case: Callable[[str], Case]) -> None:
    found = case(function("torch.exp(x)", "torch.randn(8).double()"))
    answer = found.right[0] * 1.5
    before = answer.clone()
    assert found.judge(answer).reason is not None
    assert torch.equal(answer, before)
    assert not plainly_right([answer], found.expected)
    assert torch.equal(answer, before)


# ---------------------------------------------------------------- wrong answers


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
def test_zeros_and_the_mean_are_wrong(case: Callable[[str], Case], dtype: str) -> None:
    found = case(function("torch.tanh(x)", f"torch.randn(16, 64).to(torch.{dtype})"))
    (right,) = found.right
    assert found.judge(torch.zeros_like(right)).reason is Reason.WRONG_VALUES
    mean = torch.full_like(right, right.double().mean().item())
    assert found.judge(mean).reason is Reason.WRONG_VALUES


@pytest.mark.parametrize("share", [0.01, 0.0005])
def test_a_few_wrong_elements_are_wrong(matmuls: dict[str, Case], share: float) -> None:
    found = matmuls["strict"]
    (answer,) = found.right
    # A small one may be as near to its opposite as fewer bits would bring it.
    large = (answer.abs() > answer.abs().median()).flatten().nonzero().flatten()
    chosen = large[torch.randperm(large.numel())[: max(1, int(share * answer.numel()))]]
    answer.view(-1)[chosen] *= -1
    comparison = found.judge(answer)
    assert comparison.reason is Reason.WRONG_VALUES
    assert comparison.surveys[0].wrong == len(chosen)


def test_the_worst_element_is_the_one_that_is_worst(case: Callable[[str], Case]) -> None:
    found = case(function("(x[0] + 1, x * 3)", "torch.randn(4, 5, 6)"))
    first, second = found.right
    first[2, 3] += 0.5
    second[3, 1, 4] += 70
    second[0, 0, 0] += 7
    worst = found.judge(first, second).worst
    assert worst is not None
    assert (worst.workload, worst.inputs) == ("default", "author")
    assert (worst.output, worst.index) == (1, (3, 1, 4))
    assert worst.got == float(second[3, 1, 4])
    assert worst.expected == pytest.approx(float(worst.got) - 70, rel=1e-5)
    bound = found.expected.bounds.of(1, found.expected.oracle[1])
    assert bound is not None
    assert worst.allowed == float(bound[3, 1, 4])


def test_the_worst_element_is_relative_to_what_was_allowed(case: Callable[[str], Case]) -> None:
    """A large error on a large element can be less wrong than a small one on a small element."""
    found = case(function("x * torch.tensor([1e6, 1.0])", "torch.rand(64, 2) + 0.5"))
    (answer,) = found.right
    allowed = found.expected.bounds.of(0, found.expected.oracle[0])
    assert allowed is not None
    answer[5, 0] += 3 * allowed[5, 0]
    answer[9, 1] += 9 * allowed[9, 1]
    worst = found.judge(answer).worst
    assert worst is not None
    assert worst.index == (9, 1)


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_one_element_that_is_not_finite_is_named_so(matmuls: dict[str, Case], bad: float) -> None:
    found = matmuls["strict"]
    (answer,) = found.right
    answer[7, 3] = bad
    comparison = found.judge(answer)
    assert comparison.reason is Reason.NON_FINITE
    assert comparison.error is None
    assert comparison.worst is not None
    assert comparison.worst.index == (7, 3)
    assert str(comparison.worst.got) == str(bad)


def test_not_finite_where_the_reference_is_not_finite_is_right(case: Callable[[str], Case]) -> None:
    found = case(function("torch.where(x > 0, x, x / 0)"))
    (answer,) = found.right
    assert not answer.isfinite().all()
    assert found.judge(answer).reason is None
    wrong = torch.where(answer.isfinite(), answer + 1, answer)
    assert found.judge(wrong).reason is Reason.WRONG_VALUES
    finite = torch.where(answer.isfinite(), answer, 0.0)
    assert found.judge(finite).reason is not None


def test_nan_in_the_reference_does_not_excuse_the_rest(case: Callable[[str], Case]) -> None:
    found = case(function("torch.sqrt(x)"))
    (answer,) = found.right
    assert answer.isnan().any()
    assert found.judge(answer).reason is None
    assert found.judge(torch.zeros_like(answer)).reason is not None
    assert found.judge(torch.where(answer.isnan(), answer, answer * 1.5)).reason is not None


def test_an_overflow_of_the_reference_does_not_excuse_the_rest(
    case: Callable[[str], Case],
) -> None:
    found = case(function("torch.exp(x * 4)", "torch.randn(4096).half()"))
    (answer,) = found.right
    assert answer.isinf().any()
    assert not found.expected.oracle[0].isinf().any()
    assert found.judge(answer).reason is None
    wrong = torch.where(answer.isinf(), answer, answer * 2)
    assert found.judge(wrong).reason is not None


# ---------------------------------------------------------------- precision


ROUNDED: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {
    "fp16": lambda t: t.half().float(),
    "bf16": lambda t: t.bfloat16().float(),
    "tf32": lambda t: round_mantissa(t, 10),
}


def multiplied(found: Case, rounding: str) -> torch.Tensor:
    a, b = (ROUNDED[rounding](t) for t in found.inputs.tensors)
    return a @ b


@pytest.mark.parametrize("rounding", ROUNDED)
def test_coarser_arithmetic_is_a_named_failure_in_a_strict_task(
    matmuls: dict[str, Case], rounding: str
) -> None:
    found = matmuls["strict"]
    comparison = found.judge(multiplied(found, rounding))
    assert comparison.reason is Reason.PRECISION
    assert comparison.error is not None
    assert comparison.error > found.expected.rtol


@pytest.mark.parametrize(
    ("allowed", "rounding", "right"),
    [
        ("tf32", "tf32", True),
        ("tf32", "fp16", True),
        ("tf32", "bf16", False),
        ("fp16", "fp16", True),
        ("fp16", "bf16", False),
        ("bf16", "bf16", True),
        ("bf16", "tf32", True),
    ],
)
def test_a_task_decides_how_coarse_arithmetic_may_be(
    matmuls: dict[str, Case], allowed: str, rounding: str, right: bool
) -> None:
    found = matmuls[allowed]
    reason = found.judge(multiplied(found, rounding)).reason
    assert reason is (None if right else Reason.PRECISION)


@pytest.mark.parametrize("allowed", ["tf32", "fp16", "bf16"])
def test_a_coarse_task_still_refuses_what_is_plainly_wrong(
    matmuls: dict[str, Case], allowed: str
) -> None:
    found = matmuls[allowed]
    (answer,) = found.right
    assert found.judge(torch.zeros_like(answer)).reason is Reason.WRONG_VALUES
    answer[0, 0] += answer.std()
    assert found.judge(answer).reason is Reason.WRONG_VALUES


def test_parameters_are_rounded_too_where_a_task_allows_it(case: Callable[[str], Case]) -> None:
    found = case("""
import torch

TASK = {"precision": "bf16"}

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.randn(256, 32))

    def forward(self, x):
        return x @ self.weight

def get_inputs():
    return [torch.ones(16, 256)]
""")
    weight = next(found.reference.model(found.workload).parameters()).detach()
    answer = found.inputs.tensors[0] @ weight.bfloat16().float()
    assert found.judge(answer).reason is None


def test_a_coarse_output_does_not_loosen_its_neighbour(case: Callable[[str], Case]) -> None:
    found = case(function("(torch.tanh(x).bfloat16(), torch.tanh(x))"))
    coarse, fine = found.right
    assert found.judge(coarse, fine).reason is None
    assert found.judge(coarse * 1.002, fine).reason is None
    comparison = found.judge(coarse, fine * 1.002)
    assert comparison.reason is not None
    assert comparison.worst is not None
    assert comparison.worst.output == 1


def test_the_authors_tolerance_replaces_the_derived_one(case: Callable[[str], Case]) -> None:
    settings = '{"tolerance": {"rtol": 0.1, "atol": 0.01}}'
    found = case(function("x + 3", "torch.rand(64)", settings))
    (answer,) = found.right
    assert found.judge(answer * 1.09).reason is None
    assert found.judge(answer * 1.12).reason is not None
    exact = case(function("x + 3", "torch.rand(64)", '{"tolerance": {"rtol": 0, "atol": 0}}'))
    assert exact.judge(*exact.right).reason is None
    assert exact.judge(exact.right[0] * 1.00001).reason is not None


# ---------------------------------------------------------------- scale


@settings(max_examples=60)
@given(
    exponent=st.integers(-80, 80),
    error=st.sampled_from([0.0, 1e-7, 1e-5, 3e-5, 1e-4, 1e-3, 0.1]),
)
def test_the_verdict_does_not_depend_on_the_scale(
    scaled_case: Case, exponent: int, error: float
) -> None:
    """All magnitudes are powers of two away from one another, so every rounding is the same."""
    plain = scaled_case
    factor = 2.0**exponent
    scaled_inputs = InputSet(plain.inputs.template, [t * factor for t in plain.inputs.tensors])
    scaled = Case.on(plain.reference, plain.workload, scaled_inputs)
    wobble = 1 + error * torch.sin(torch.arange(plain.right[0].numel()).double())
    (right,) = plain.right
    answer = (right.double() * wobble.view(right.shape)).float()
    plain_verdict, scaled_verdict = plain.judge(answer), scaled.judge(answer * factor)
    assert scaled_verdict.reason is plain_verdict.reason
    assert scaled_verdict.error == pytest.approx(plain_verdict.error)
    assert scaled_verdict.surveys[0].peak == pytest.approx(plain_verdict.surveys[0].peak)
    assert histogram(scaled_verdict.surveys) == histogram(plain_verdict.surveys)


@pytest.fixture(scope="module")
def scaled_case(tmp_path_factory: pytest.TempPathFactory) -> Case:
    path = tmp_path_factory.mktemp("scaled") / "linear.py"
    path.write_text(function("x.sum(0) - x[0] / 3"))
    return Case.of(read_task(path))


def test_an_output_of_zeros_must_be_zero(case: Callable[[str], Case]) -> None:
    found = case(function("x * 0"))
    (answer,) = found.right
    assert found.judge(answer).reason is None
    answer[0, 0] = 1e-30
    assert found.judge(answer).reason is not None


# ---------------------------------------------------------------- results that jump


def test_integers_must_be_equal(case: Callable[[str], Case]) -> None:
    found = case(function("torch.argsort(x, -1)"))
    (answer,) = found.right
    assert found.judge(answer).reason is None
    answer[3, 0] += 1
    comparison = found.judge(answer)
    assert comparison.reason is Reason.WRONG_VALUES
    assert comparison.worst is not None
    assert comparison.worst.index == (3, 0)
    assert comparison.worst.allowed == 0


def test_integers_may_fall_on_either_side_of_a_rounding_boundary(
    case: Callable[[str], Case],
) -> None:
    found = case(function("torch.round(x * 0.1).int()", "torch.full((64,), 5.0) + torch.rand(1)"))
    x = torch.tensor([5.0, 15.0, 24.999999, 25.000002, 34.99999])
    inputs = InputSet(found.inputs.template, [x])
    tied = Case.on(found.reference, found.workload, inputs)
    below, above = (x * 0.1 - 1e-6).round().int(), (x * 0.1 + 1e-6).round().int()
    assert not torch.equal(below, above)
    assert tied.judge(below).reason is None
    assert tied.judge(above).reason is None
    assert tied.judge(above + 1).reason is Reason.WRONG_VALUES


def test_dynamic_quantisation_may_multiply_by_the_reciprocal(case: Callable[[str], Case]) -> None:
    """Scaling all inputs alike does not move such an element across its boundary."""
    found = case(QUANTISE)
    x = found.inputs.tensors[0].clone()
    largest = x.abs().amax(-1, keepdim=True)
    steps = torch.randint(-120, 120, x.shape) + 0.5
    on_boundaries = torch.where(torch.rand(x.shape) < 0.002, steps * (largest / 127), x)
    inputs = InputSet(found.inputs.template, [on_boundaries])
    tied = Case.on(found.reference, found.workload, inputs)
    largest = on_boundaries.abs().amax(-1, keepdim=True)
    answer = torch.round(on_boundaries * (127 / largest)).to(torch.int8)
    (right,) = tied.right
    assert not torch.equal(answer, right), "the boundaries must make a difference"
    assert (answer.int() - right.int()).abs().max() == 1
    assert tied.judge(answer).reason is None


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_dynamic_quantisation_of_half_precision_may_multiply_by_the_reciprocal(
    case: Callable[[str], Case], dtype: str
) -> None:
    """Half precision has few values, so many quotients lie exactly between two integers."""
    expression = """(lambda w: (w / (w.abs().amax(-1, keepdim=True) / 127)).round().to(torch.int8))(
            x.to(torch.promote_types(x.dtype, torch.float32)))"""
    found = case(function(expression, f"torch.randn(64, 512, dtype=torch.{dtype})"))
    (x,) = found.inputs.tensors
    wide = x.float()
    quantised = (wide * (127 / wide.abs().amax(-1, keepdim=True))).round().to(torch.int8)
    assert not torch.equal(quantised, found.right[0]), "nothing to forgive"
    assert found.judge(quantised).reason is None
    assert found.judge(quantised + (quantised == 5).to(torch.int8)).reason is Reason.WRONG_VALUES


def test_being_off_by_one_away_from_a_boundary_is_wrong(case: Callable[[str], Case]) -> None:
    found = case(QUANTISE)
    (answer,) = found.right
    x = found.inputs.tensors[0]
    position = x / (x.abs().amax(-1, keepdim=True) / 127)
    safest = int(((position - position.round()).abs()).flatten().argmin())
    answer.view(-1)[safest] += 1 if answer.view(-1)[safest] < 0 else -1
    assert found.judge(answer).reason is Reason.WRONG_VALUES


def test_truncating_instead_of_rounding_is_wrong(case: Callable[[str], Case]) -> None:
    found = case(QUANTISE)
    x = found.inputs.tensors[0]
    truncated = (x / (x.abs().amax(-1, keepdim=True) / 127)).to(torch.int8)
    assert found.judge(truncated).reason is Reason.WRONG_VALUES


def test_comparisons_may_fall_on_either_side(case: Callable[[str], Case]) -> None:
    found = case(function("x * 0.1 > 0.5", "torch.rand(64) * 10"))
    x = torch.tensor([4.0, 5.0, 5.0, 6.0])
    tied = Case.on(found.reference, found.workload, InputSet(found.inputs.template, [x]))
    assert tied.judge(torch.tensor([False, True, False, True])).reason is None
    assert tied.judge(torch.tensor([True, True, False, True])).reason is Reason.WRONG_VALUES


def test_boundaries_are_not_forgiven_when_kernels_are_replaced(case: Callable[[str], Case]) -> None:
    found = case(function("torch.round(x).int()", "torch.full((4,), 0.5) + torch.rand(1) * 0"))
    (right,) = found.right
    assert plainly_right([right], found.expected)
    assert not plainly_right([right + 1], found.expected)


# ---------------------------------------------------------------- odd references


@pytest.mark.parametrize(
    "insist",
    [
        "assert x.dtype == torch.float32",
        "if x.dtype != torch.float32: raise TypeError('float32 only')",
        "if x.dtype != torch.float32: raise ValueError('float32 only')",
        "x @ torch.ones(64, 1, dtype=torch.float32)",
    ],
)
def test_a_reference_that_insists_on_its_dtype_is_its_own_oracle(
    case: Callable[[str], Case], insist: str
) -> None:
    source = function("torch.tanh(x)").replace("return", f"{insist}\n        return", 1)
    found = case(source)
    assert not found.expected.has_oracle
    (answer,) = found.right
    assert found.judge(answer).reason is None
    assert found.judge(answer + 1e-6).reason is None
    assert found.judge(answer + 0.01).reason is Reason.WRONG_VALUES


# As networks do that draw their first state themselves.
def test_tensors_that_a_reference_makes_are_as_wide_as_the_oracle(
    case: Callable[[str], Case],
) -> None:
    found = case(function("x @ torch.ones(64, 1)", settings='{"precision": "tf32"}'))
    assert found.expected.has_oracle
    assert found.expected.rtol > 1e-4
    assert torch.get_default_dtype() is torch.float32


def test_allowed_precision_is_measured_without_an_oracle(case: Callable[[str], Case]) -> None:
    expression = "x @ torch.ones(64, 1, dtype=torch.float32)"
    found = case(function(expression, settings='{"precision": "tf32"}'))
    assert not found.expected.has_oracle
    assert found.expected.rtol > 1e-4


# Large numbers, two of which are nearly equal here and there: TF32 takes the other one then.
DECISIONS = function(
    "torch.softmax(1e4 * x, -1).cumsum(-1)",
    "torch.rand(2000, 8).double().sort().values.float()",
    settings='{"precision": "PRECISION"}',
)


def as_variant(found: Case) -> Case:
    """The same inputs, with a tolerance that was measured on others."""
    inputs = replace(found.inputs, label="large")
    expected = expect(found.reference, found.workload, inputs)
    return replace(found, inputs=inputs, expected=expected)


@pytest.mark.parametrize("precision", ["strict", "tf32"])
def test_what_the_allowed_precision_leaves_open_is_not_held_against_anybody(
    case: Callable[[str], Case], precision: str
) -> None:
    found = as_variant(case(DECISIONS.replace("PRECISION", precision)))
    (answer,) = found.right
    another = answer.clone()
    another[5:9] = another[5:9].flip(-1)
    assert (found.judge(another).reason is None) == (precision == "tf32")
    assert found.judge(answer.flip(-1)).reason is not None
    another[7, 3] = float("nan")
    assert found.judge(another).reason is Reason.NON_FINITE


# A GPU's library has TF32 to offer; here it is played.
@pytest.mark.parametrize(("share", "accepted"), [(0.0, True), (0.01, True), (0.04, False)])
def test_pytorch_in_the_allowed_precision_sets_the_measure(
    case: Callable[[str], Case], monkeypatch: pytest.MonkeyPatch, share: float, accepted: bool
) -> None:
    def shuffled(reference: Reference, workload: Workload, inputs: InputSet) -> Result:
        (answer,) = reference.call(workload, inputs).tensors
        answer[:32] = answer[:32].flip(-1)  # of 2,000
        return Result("tensor", [answer])

    usual = case(function("torch.tanh(x)", "torch.randn(2000, 8)", '{"precision": "tf32"}'))
    monkeypatch.setattr(Reference, "library", shuffled)
    (answer,) = usual.right
    wrong = int(share * len(answer))
    answer[len(answer) - wrong :] = answer[len(answer) - wrong :].flip(-1)
    assert (as_variant(usual).judge(answer).reason is None) == accepted
    assert (usual.judge(answer).reason is None) == (not wrong)


def test_layers_that_round_again_widen_the_tolerance(
    case: Callable[[str], Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    found = case(function("torch.tanh(x)", settings='{"precision": "tf32"}'))
    usual = precision_rtol(found.reference, found.workload, found.inputs)

    def coarse(reference: Reference, workload: Workload, inputs: InputSet) -> Result:
        (answer,) = reference.call(workload, inputs).tensors
        return Result("tensor", [answer * 1.01])

    monkeypatch.setattr(Reference, "library", coarse)
    assert usual < 0.005 < precision_rtol(found.reference, found.workload, found.inputs) < 0.02


def test_complex_outputs_are_compared_as_numbers(case: Callable[[str], Case]) -> None:
    found = case(function("torch.fft.fft(x)", "torch.randn(16, 64)"))
    (answer,) = found.right
    naive = torch.fft.fft(found.inputs.tensors[0].double()).to(torch.complex64)
    assert not torch.equal(naive, answer)
    assert found.judge(naive).reason is None
    wrong = naive.clone()
    wrong[3, 5] += 2j
    comparison = found.judge(wrong)
    assert comparison.reason is Reason.WRONG_VALUES
    assert comparison.worst is not None
    assert comparison.worst.index == (3, 5, 1)
    assert found.judge(naive.conj()).reason is Reason.WRONG_VALUES


def test_complex_inputs_are_promoted(case: Callable[[str], Case]) -> None:
    found = case(function("x * x", "torch.randn(16, dtype=torch.complex64)"))
    assert found.expected.oracle[0].dtype == torch.float64
    assert 0 < found.expected.reference_error < 1e-6


# ---------------------------------------------------------------- counting


@given(st.lists(st.floats(0, 1e4) | st.just(float("inf")), max_size=50))
def test_histogram_counts_every_element_once(values: list[float]) -> None:
    bounds = Bounds([False], Tolerance(rtol=0, atol=1), [0.0], [0.0])
    outputs = [torch.tensor(values, dtype=torch.float64), torch.zeros(2, 3, dtype=torch.float64)]
    bins = histogram([survey(t, bounds, 0, [torch.zeros_like(t)]) for t in outputs])
    assert sum(b.elements for b in bins) == len(values) + 6
    lower = -1.0
    for item in bins:
        upper = float("inf") if item.up_to is None else item.up_to
        own = sum(lower < value <= upper for value in [*values, *[0.0] * 6])
        assert item.elements == own
        lower = upper


def test_histogram_of_a_comparison_covers_every_output(case: Callable[[str], Case]) -> None:
    found = case(function("(x, x > 0, x.sum())"))
    bins = histogram(found.judge(*found.right).surveys)
    assert sum(b.elements for b in bins) == 2 * 16 * 64 + 1


def test_relative_error_and_scale() -> None:
    want = torch.tensor([3.0, -4.0]).double()
    scale = scale_of(want)
    assert scale == pytest.approx((12.5) ** 0.5)
    assert relative_error(torch.tensor([3.0, -4.0]), want) == 0
    assert relative_error(torch.tensor([3.0, -5.0]), want) == pytest.approx(1 / (4 + scale))
    for bad in ("nan", "inf", "-inf"):
        assert relative_error(torch.tensor([3.0, float(bad)]), want) == float("inf")
    assert scale_of(torch.tensor([3.0, -4.0, float("inf"), float("nan")])) == pytest.approx(scale)
    assert scale_of(torch.tensor([])) == 0


CHOICE = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.topk(torch.sigmoid(x) + 64.0, 4).indices

def get_inputs():
    return [torch.randn(4000, 64)]
"""


def chosen_from_the_other_end(x: torch.Tensor, offset: float) -> torch.Tensor:
    """The same choice, where the last of equals wins."""
    scores = 1 / (1 + torch.exp(-x.flip(1))) + offset
    return 63 - torch.sort(scores, stable=True, descending=True).indices[:, :4]


def test_either_of_two_that_rounding_makes_equal_may_be_chosen(case: Callable[[str], Case]) -> None:
    choice = case(CHOICE)
    (x,) = choice.inputs.tensors
    other = chosen_from_the_other_end(x, 64.0)
    assert not torch.equal(other, choice.expected.oracle[0])
    assert choice.judge(other).reason is None


def test_a_choice_that_rounding_does_not_explain_is_wrong(case: Callable[[str], Case]) -> None:
    choice = case(CHOICE)
    (x,) = choice.inputs.tensors
    coarse = chosen_from_the_other_end(x, 1024.0)  # sixteen times as many are equal
    assert choice.judge(coarse).reason is Reason.WRONG_VALUES


def test_a_reference_that_takes_no_noise_gives_no_further_benefit(
    case: Callable[[str], Case], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse() -> None:
        raise RuntimeError("no noise here")

    choice = case(CHOICE)
    (x,) = choice.inputs.tensors
    monkeypatch.setattr(comparison_module, "RoundingNoise", refuse)
    other = chosen_from_the_other_end(x, 64.0)
    assert choice.judge(other).reason is Reason.WRONG_VALUES
    assert choice.judge(choice.expected.oracle[0]).reason is None
