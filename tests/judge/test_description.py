"""What a result must look like, before anyone looks at its values."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.evaluation.judge.values.description import check_description
from kernel_smith.records import Reason

TENSOR = {
    "shape": [2, 3],
    "dtype": "float32",
    "stride": [3, 1],
    "dense": True,
    "aliases": False,
    "reused": False,
}
PAIR = {"tree": ["tuple", "tensor", "tensor"], "tensors": [dict(TENSOR), dict(TENSOR)]}


def changed(**fields: Any) -> dict[str, Any]:
    """The expected pair with a second tensor that differs."""
    described = copy.deepcopy(PAIR)
    described["tensors"][1] |= fields  # type: ignore[index]
    return described


def rejection(got: Any, want: dict[str, Any] = PAIR) -> Rejected:
    with pytest.raises(Rejected) as caught:
        check_description(got, want)
    return caught.value


def test_the_same_description_passes() -> None:
    check_description(copy.deepcopy(PAIR), PAIR)


@pytest.mark.parametrize(
    ("got", "reason"),
    [
        (changed(shape=[3, 2]), Reason.OUTPUT_SHAPE),
        (changed(shape=[2, 3, 1], stride=[3, 1, 1]), Reason.OUTPUT_SHAPE),
        (changed(dtype="float16"), Reason.OUTPUT_DTYPE),
        (changed(stride=[0, 0]), Reason.OUTPUT_STRIDES),
        (changed(stride=[1, 2]), Reason.OUTPUT_STRIDES),
        (changed(stride=[6, 2]), Reason.OUTPUT_STRIDES),
        (changed(dense=False), Reason.OUTPUT_TYPE),
        (changed(aliases=True), Reason.OUTPUT_ALIASES_INPUT),
        (changed(reused=True), Reason.OUTPUT_REUSED),
    ],
    ids=lambda value: value.value if isinstance(value, Reason) else None,
)
def test_each_difference_of_a_tensor_has_its_reason(got: dict[str, Any], reason: Reason) -> None:
    rejected = rejection(got)
    assert rejected.reason is reason
    assert "output 1" in rejected.message


@pytest.mark.parametrize(
    "tree",
    [
        "tensor",
        ["list", "tensor", "tensor"],
        ["tuple", "tensor"],
        ["tuple", "tensor", "float"],
        ["dict", ["a", "tensor"], ["b", "tensor"]],
        [],
    ],
    ids=str,
)
def test_another_nesting_is_another_structure(tree: Any) -> None:
    rejected = rejection({"tree": tree, "tensors": [TENSOR, TENSOR]})
    assert rejected.reason is Reason.OUTPUT_STRUCTURE
    assert "expected tuple(tensor, tensor)" in rejected.message


@pytest.mark.parametrize("kind", ["candidate.Lazy", "numpy.ndarray", "builtins.NoneType"])
def test_what_is_no_tensor_is_named(kind: str) -> None:
    rejected = rejection({"tree": ["tuple", "tensor", f"?{kind}"], "tensors": [TENSOR]})
    assert rejected.reason is Reason.OUTPUT_TYPE
    assert f"got tuple(tensor, {kind})" in rejected.message


def test_a_shape_is_told_before_a_dtype() -> None:
    rejected = rejection(changed(shape=[6], stride=[1], dtype="int8"))
    assert rejected.reason is Reason.OUTPUT_SHAPE
    assert "got [6], expected [2, 3]" in rejected.message


def test_the_references_strides_and_contiguous_ones_are_both_right() -> None:
    transposed = {"tree": "tensor", "tensors": [TENSOR | {"stride": [1, 2]}]}
    contiguous = {"tree": "tensor", "tensors": [TENSOR]}
    check_description(transposed, transposed)
    check_description(contiguous, transposed)
    assert rejection(transposed, contiguous).reason is Reason.OUTPUT_STRIDES


def test_what_strides_are_expected_is_said_once() -> None:
    contiguous, transposed, expanded = (
        {"tree": "tensor", "tensors": [TENSOR | {"stride": stride}]}
        for stride in ([3, 1], [1, 2], [0, 0])
    )
    message = rejection(expanded, contiguous).message
    assert message == "output 0: got strides [0, 0], expected [3, 1] (contiguous)"
    message = rejection(expanded, transposed).message
    assert message.endswith("expected [1, 2] (the reference's) or [3, 1] (contiguous)")


@pytest.mark.parametrize(
    ("shape", "mine", "theirs"),
    [([1, 3], [99, 1], [3, 1]), ([3, 1], [1, 77], [1, 1]), ([0, 3], [5, 9], [3, 1])],
)
def test_strides_that_nobody_can_notice_do_not_matter(
    shape: list[int], mine: list[int], theirs: list[int]
) -> None:
    got = {"tree": "tensor", "tensors": [TENSOR | {"shape": shape, "stride": mine}]}
    want = {"tree": "tensor", "tensors": [TENSOR | {"shape": shape, "stride": theirs}]}
    check_description(got, want)


@pytest.mark.parametrize("habit", ["aliases", "reused"])
def test_what_the_reference_does_a_candidate_may_do(habit: str) -> None:
    want = {"tree": "tensor", "tensors": [TENSOR | {habit: True}]}
    check_description(copy.deepcopy(want), want)


def nested(depth: int) -> Any:
    tree: Any = "tensor"
    for _ in range(depth):
        tree = ["list", tree]
    return tree


@pytest.mark.parametrize(
    "got",
    [
        None,
        3,
        [],
        "text",
        {},
        {"tree": PAIR["tree"]},
        {"tree": PAIR["tree"], "tensors": [TENSOR]},
        {"tree": PAIR["tree"], "tensors": [TENSOR, None]},
        {"tree": PAIR["tree"], "tensors": [TENSOR, {}]},
        {"tree": PAIR["tree"], "tensors": None},
        changed(stride=None),
        changed(stride=[3, 1, 1]),
        {"tree": {"a": 1}, "tensors": []},
        {"tree": nested(3000), "tensors": []},
    ],
    ids=lambda value: str(value)[:40] if not isinstance(value, dict) else None,
)
def test_forged_descriptions_are_rejected_and_never_crash_the_judge(got: Any) -> None:
    rejected = rejection(got)
    assert rejected.reason in (Reason.PROTOCOL_VIOLATION, Reason.OUTPUT_STRUCTURE)


def test_messages_about_forged_descriptions_are_short() -> None:
    rejected = rejection({"tree": ["tuple", *["tensor"] * 100_000], "tensors": []})
    assert len(rejected.message) < 10_000


def test_messages_hold_real_characters_alone() -> None:
    rejected = rejection({"tree": "?\ud800\x1b[31m", "tensors": []})
    rejected.message.encode()
    assert "\x1b" not in rejected.message
