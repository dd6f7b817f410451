"""Arguments and results travel as JSON around their tensors, and nothing else gets through."""

from __future__ import annotations

import json
from collections import OrderedDict, UserDict, namedtuple
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.evaluation.sandbox.tree import (
    UnsupportedValue,
    flatten,
    flatten_result,
    unflatten,
)

Pair = namedtuple("Pair", ["first", "second"])

tensors_of_any_size = st.integers(0, 4).map(torch.zeros)
leaves = (
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=5)
    | st.sampled_from([torch.float32, torch.bfloat16, torch.int64, torch.bool])
    | tensors_of_any_size
)
keys = st.text(max_size=4) | st.integers(-9, 9) | st.none()
arguments = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(keys, inner, max_size=3)
    ),
    max_leaves=10,
)
results = st.recursive(
    tensors_of_any_size,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text("abc", max_size=4), inner, max_size=3)
    ),
    max_leaves=8,
)


class Lazy(torch.Tensor):
    """A subclass, which may compute when it is read."""


def same(left: Any, right: Any) -> bool:
    """Equal in value and type, tensors being the same objects."""
    if type(left) is not type(right):
        return False
    if isinstance(left, torch.Tensor):
        return left is right
    if isinstance(left, (list, tuple)):
        return len(left) == len(right) and all(map(same, left, right))
    if isinstance(left, dict):
        return list(left) == list(right) and all(same(left[key], right[key]) for key in left)
    return bool(left == right)


@given(arguments)
def test_arguments_come_back_around_the_same_tensors(value: Any) -> None:
    tensors: list[torch.Tensor] = []
    template = json.loads(json.dumps(flatten(value, tensors)))
    assert same(unflatten(template, tensors), value)


@given(arguments)
def test_other_tensors_can_take_their_places(value: Any) -> None:
    tensors: list[torch.Tensor] = []
    template = flatten(value, tensors)
    others = [torch.ones(3) for _ in tensors]
    again: list[torch.Tensor] = []
    assert flatten(unflatten(template, others), again) == template
    assert all(map(same, again, others))


def test_numbers_that_are_not_finite_come_back() -> None:
    template = json.loads(json.dumps(flatten([float("inf"), float("-inf"), float("nan")], [])))
    largest, smallest, nothing = unflatten(template, [])
    assert (largest, smallest) == (float("inf"), float("-inf"))
    assert nothing != nothing


@pytest.mark.parametrize(
    "value",
    [object(), {1, 2}, b"bytes", 3j, torch.device("cpu"), lambda: None, UserDict(), range(3)],
    ids=lambda value: type(value).__name__,
)
def test_values_that_cannot_travel_are_refused_by_name(value: Any) -> None:
    with pytest.raises(UnsupportedValue, match=type(value).__name__):
        flatten([value], [])


def test_keys_that_cannot_travel_are_refused() -> None:
    with pytest.raises(UnsupportedValue, match="tuple"):
        flatten({(1, 2): torch.zeros(1)}, [])


@given(results)
def test_tensors_of_a_result_are_taken_in_order(value: Any) -> None:
    tensors: list[torch.Tensor] = []
    tree = flatten_result(value, tensors)
    assert str(tree).count("tensor") >= len(tensors)
    assert "?" not in str(tree)
    expected: list[torch.Tensor] = []
    flatten(value, expected)
    assert [t.data_ptr() for t in tensors] == [t.data_ptr() for t in expected]
    assert [t.shape for t in tensors] == [t.shape for t in expected]


@given(results, results)
def test_results_of_another_structure_have_another_tree(left: Any, right: Any) -> None:
    def skeleton(value: Any) -> Any:
        return json.dumps(flatten(value, []))

    different = skeleton(left) != skeleton(right)
    assert (flatten_result(left, []) != flatten_result(right, [])) == different


def test_numbers_in_a_result_become_tensors_so_that_they_are_compared() -> None:
    tensors: list[torch.Tensor] = []
    assert flatten_result([True, 3, 0.1], tensors) == ["list", "bool", "int", "float"]
    assert [t.item() for t in tensors] == [1, 3, 0.1]
    assert [t.dtype for t in tensors] == [torch.int64, torch.int64, torch.float64]


def test_parameters_count_as_tensors_and_named_tuples_as_tuples() -> None:
    tensors: list[torch.Tensor] = []
    parameter = torch.nn.Parameter(torch.zeros(2))
    tree = flatten_result(Pair(parameter, torch.ones(1)), tensors)
    assert tree == flatten_result((torch.zeros(2), torch.ones(1)), [])
    assert [type(t) for t in tensors] == [torch.Tensor, torch.Tensor]
    assert not tensors[0].requires_grad


@pytest.mark.parametrize(
    "value",
    [
        torch.zeros(2).as_subclass(Lazy),
        torch.nn.Buffer(torch.zeros(2)).as_subclass(Lazy),
        OrderedDict(a=torch.zeros(1)),
        type("Sneaky", (list,), {})([torch.zeros(1)]),
        type("Whole", (int,), {})(3),
        None,
        "text",
        3j,
        iter([torch.zeros(1)]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_not_exactly_a_tensor_is_named_instead_of_taken(value: Any) -> None:
    tensors: list[torch.Tensor] = []
    tree = flatten_result((torch.zeros(1), value), tensors)
    assert tree == ["tuple", "tensor", f"?{type(value).__module__}.{type(value).__qualname__}"]
    assert len(tensors) == 1
