"""Programs out of two: functions of one with all that they need, in the place of the other's."""

from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.programs.merge import has_function, with_functions, workload_function
from kernel_smith.records import MAX_SOURCE

PLAIN = """import math

SCALE = {scale}


def helper(x):
    return x * SCALE


def run_wide(x):
    return ("{tag} wide", helper(x))


def run_odd(x):
    return ("{tag} odd", helper(x) + 1)


class ModelNew:
    def forward(self, x):
        return run_wide(x) if x > 0 else run_odd(x)
"""

KERNELS = '''import torch
from kernel_smith.inline import cpp

SOURCE = r"""
#include <cmath>  // {preamble}

extern "C" void shared(float* x) {{ x[0] = {shared}; }}

extern "C" void only_odd(float* x) {{ x[0] = {odd}; }}
"""

kernels = cpp(SOURCE)


def run_wide(x):
    kernels.shared(x)
    return x


def run_odd(x):
    kernels.shared(x)
    kernels.only_odd(x)
    return x


class ModelNew(torch.nn.Module):
    def forward(self, x):
        return run_wide(x) if x.numel() > 9 else run_odd(x)
'''


def ran(source: str, x: float) -> Any:
    names: dict[str, Any] = {}
    exec(compile(source, "merged", "exec"), names)
    return names["ModelNew"]().forward(x)


def kernels(preamble: str = "usual", shared: int = 1, odd: int = 2) -> str:
    return KERNELS.format(preamble=preamble, shared=shared, odd=odd)


@given(mine=st.integers(1, 5), theirs=st.integers(1, 5), x=st.integers(-4, 4))
def test_each_workload_is_done_as_the_program_that_it_is_taken_from_does_it(
    mine: int, theirs: int, x: int
) -> None:
    host = PLAIN.format(scale=mine, tag="mine")
    donor = PLAIN.format(scale=theirs, tag="theirs")
    merged = with_functions(host, {"run_odd": donor})
    assert merged is not None
    assert ran(merged, x) == ran(host if x > 0 else donor, x)
    both = with_functions(host, {"run_odd": donor, "run_wide": donor})
    assert both is not None
    assert ran(both, x) == ran(donor, x)


def test_what_nobody_uses_any_more_is_left_out() -> None:
    host, donor = PLAIN.format(scale=2, tag="a"), PLAIN.format(scale=3, tag="b")
    both = with_functions(host, {"run_odd": donor, "run_wide": donor})
    assert both is not None and "SCALE = 2" not in both and "import math" in both


def test_what_would_be_too_long_for_a_program_is_not_made() -> None:
    host, donor = PLAIN.format(scale=2, tag="a"), PLAIN.format(scale=3, tag=MAX_SOURCE * "b")
    assert with_functions(host, {"run_odd": donor}) is None


def test_kernels_move_into_the_kernel_text_of_the_other() -> None:
    merged = with_functions(kernels(), {"run_odd": kernels(odd=9)})
    assert merged == kernels(odd=9)


def test_a_kernel_that_others_call_as_well_gets_a_name_of_its_own() -> None:
    merged = with_functions(kernels(), {"run_odd": kernels(shared=7)})
    assert merged is not None
    assert "void shared(float* x) { x[0] = 1; }" in merged
    assert "void shared_odd(float* x) { x[0] = 7; }" in merged
    assert merged.count("kernels.shared(x)") == 1 and merged.count("kernels.shared_odd(x)") == 1
    assert merged.count("cpp(") == 1


def test_texts_that_differ_in_more_than_functions_stay_side_by_side() -> None:
    merged = with_functions(kernels(), {"run_odd": kernels(preamble="fast", odd=9)})
    assert merged is not None
    assert "kernels_odd = cpp(SOURCE_odd)" in merged and "kernels_odd.only_odd(x)" in merged
    assert "// fast" in merged and "x[0] = 2" in merged


def test_functions_that_are_called_otherwise_are_not_exchanged() -> None:
    host = PLAIN.format(scale=2, tag="a")
    other = host.replace("def run_odd(x)", "def run_odd(x, y)")
    assert with_functions(host, {"run_odd": other}) is None
    assert with_functions(host, {"run_even": host}) is None
    assert with_functions(host, {"run_odd": "def ("}) is None
    twice = host + "\nSCALE = 4\n"
    assert with_functions(host, {"run_odd": twice}) is None


def test_a_workload_has_a_function_of_its_name() -> None:
    assert workload_function("head-64.5") == "run_head_64_5"
    assert has_function(PLAIN, "run_wide") and not has_function(PLAIN, "run_head")
