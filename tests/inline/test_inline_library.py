"""Calling compiled functions with tensors and numbers."""

import copy
import ctypes
import struct
import threading
from collections.abc import Callable

import numpy
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.inline.library import Library

INTEGERS = {
    "int8_t": (-(2**7), 2**7 - 1),
    "int16_t": (-(2**15), 2**15 - 1),
    "int32_t": (-(2**31), 2**31 - 1),
    "int64_t": (-(2**63), 2**63 - 1),
    "uint8_t": (0, 2**8 - 1),
    "uint16_t": (0, 2**16 - 1),
    "uint32_t": (0, 2**32 - 1),
    "uint64_t": (0, 2**64 - 1),
    "signed char": (-(2**7), 2**7 - 1),
    "unsigned char": (0, 2**8 - 1),
    "short": (-(2**15), 2**15 - 1),
    "unsigned short": (0, 2**16 - 1),
    "int": (-(2**31), 2**31 - 1),
    "unsigned int": (0, 2**32 - 1),
    "long": (-(2**63), 2**63 - 1),
    "unsigned long": (0, 2**64 - 1),
    "long long": (-(2**63), 2**63 - 1),
    "unsigned long long": (0, 2**64 - 1),
    "size_t": (0, 2**64 - 1),
    "ptrdiff_t": (-(2**63), 2**63 - 1),
}
FLOATS = {"float": "<f", "double": "<d"}


def function_name(ctype: str) -> str:
    return "same_" + ctype.replace(" ", "_")


IDENTITIES = "#include <cstddef>\n#include <cstdint>\n" + "".join(
    f'extern "C" {t} {function_name(t)}({t} x) {{ return x; }}\n'
    for t in [*INTEGERS, *FLOATS, "bool", "char"]
)
KERNELS = r"""
#include <cstddef>
#include <cstdint>
#include <vector>
#include <omp.h>
#include <sched.h>

extern "C" void scale(const float* x, float* y, int64_t n, float factor) {
    for (int64_t i = 0; i < n; ++i) y[i] = factor * x[i];
}
extern "C" bool is_null(const float* x) { return x == nullptr; }
extern "C" int threads(int wanted) {
    int seen = 0;
    #pragma omp parallel num_threads(wanted)
    {
        #pragma omp atomic
        ++seen;
    }
    return seen;
}
extern "C" void spread(bool a, int8_t b, float c, uint16_t d, double e, int64_t f, float g,
                       uint32_t h, double i, int16_t j, float k, uint64_t l, double* out) {
    double values[] = {double(a), double(b), c, double(d), e, double(f), g,
                       double(h), i, double(j), k, double(l)};
    for (int n = 0; n < 12; ++n) out[n] = values[n];
}
extern "C" bool meet(int* ours, int* theirs) {
    __atomic_store_n(ours, 1, __ATOMIC_SEQ_CST);
    for (long i = 0; i < 20'000'000; ++i) {
        if (__atomic_load_n(theirs, __ATOMIC_SEQ_CST)) return true;
        sched_yield();
    }
    return false;
}
extern "C" void unsupported(std::vector<float> v) { }
extern "C" inline void never_emitted(int x) { }
extern "C" int nothing() { return 7; }
"""


@pytest.fixture(scope="module")
def same(compile_library: Callable[[str], Library]) -> Library:
    return compile_library(IDENTITIES)


@pytest.fixture(scope="module")
def kernels(compile_library: Callable[[str], Library]) -> Library:
    return compile_library(KERNELS)


@given(st.data(), st.sampled_from(sorted(INTEGERS)))
def test_integers_arrive_unchanged(same: Library, data: st.DataObject, ctype: str) -> None:
    low, high = INTEGERS[ctype]
    value = data.draw(st.integers(low, high) | st.sampled_from([low, high]))
    assert getattr(same, function_name(ctype))(value) == value


@given(st.data(), st.sampled_from(sorted(INTEGERS)))
def test_integers_that_do_not_fit_are_refused(
    same: Library, data: st.DataObject, ctype: str
) -> None:
    low, high = INTEGERS[ctype]
    value = data.draw(st.integers(max_value=low - 1) | st.integers(min_value=high + 1))
    with pytest.raises(OverflowError, match=f"{ctype} x"):
        getattr(same, function_name(ctype))(value)


@given(st.data(), st.sampled_from(sorted(FLOATS)))
def test_floating_point_numbers_arrive_unchanged(
    same: Library, data: st.DataObject, ctype: str
) -> None:
    layout = FLOATS[ctype]
    value = data.draw(st.floats(width=32 if ctype == "float" else 64))
    assert struct.pack(layout, getattr(same, function_name(ctype))(value)) == struct.pack(
        layout, value
    )


def test_bool_and_char_arrive_unchanged(same: Library) -> None:
    assert same.same_bool(True) is True
    assert same.same_bool(0) is False
    assert same.same_char(65) == 65
    assert same.same_double(3) == 3.0


def test_numpy_scalars_are_numbers(same: Library) -> None:
    assert same.same_int64_t(numpy.int64(-5)) == -5
    assert same.same_float(numpy.float32(0.5)) == 0.5


@given(
    st.tuples(
        st.booleans(),
        st.integers(-128, 127),
        st.floats(width=32, allow_nan=False),
        st.integers(0, 2**16 - 1),
        st.floats(allow_nan=False),
        st.integers(-(2**53), 2**53),
        st.floats(width=32, allow_nan=False),
        st.integers(0, 2**32 - 1),
        st.floats(allow_nan=False),
        st.integers(-(2**15), 2**15 - 1),
        st.floats(width=32, allow_nan=False),
        st.integers(0, 2**53),
    )
)
def test_many_arguments_of_mixed_kinds_keep_their_places(
    kernels: Library, values: tuple[float, ...]
) -> None:
    out = torch.empty(12, dtype=torch.float64)
    kernels.spread(*values, out)
    assert out.tolist() == [float(value) for value in values]


def test_tensors_are_read_and_written_in_place(kernels: Library) -> None:
    x = torch.arange(6, dtype=torch.float32).reshape(2, 3)
    y = torch.empty_like(x)
    assert kernels.scale(x, y, x.numel(), 2.0) is None
    assert torch.equal(y, 2 * x)


def test_input_and_output_may_be_the_same_tensor(kernels: Library) -> None:
    x = torch.ones(5)
    kernels.scale(x, x, 5, 3)
    assert torch.equal(x, torch.full((5,), 3.0))


def test_none_is_a_null_pointer(kernels: Library) -> None:
    assert kernels.is_null(None) is True
    assert kernels.is_null(torch.ones(1)) is False


def test_anything_with_a_data_pointer_is_a_tensor(kernels: Library) -> None:
    class Buffer:
        memory = (ctypes.c_float * 3)(1, 2, 3)

        def data_ptr(self) -> int:
            return ctypes.addressof(self.memory)

    buffer = Buffer()
    kernels.scale(buffer, buffer, 3, 2.0)
    assert list(buffer.memory) == [2, 4, 6]


def test_openmp_runs_in_parallel(kernels: Library) -> None:
    assert kernels.threads(2) == 2


def test_other_threads_run_during_a_call(kernels: Library) -> None:
    ours = torch.zeros(1, dtype=torch.int32)
    theirs = torch.zeros(1, dtype=torch.int32)
    met = []
    thread = threading.Thread(target=lambda: met.append(kernels.meet(theirs, ours)))
    thread.start()
    assert kernels.meet(ours, theirs) is True
    thread.join()
    assert met == [True]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        ((), "takes 4 arguments, got 0"),
        ((None, None, 1, 1.0, 1), "takes 4 arguments, got 5"),
        ((1234, None, 1, 1.0), r"argument 1 \('x'\) .* expected a tensor or None, got int 1234"),
        ((numpy.zeros(3), None, 1, 1.0), "expected a tensor or None, got ndarray"),
        ((None, None, 2.0, 1.0), r"argument 3 \('n'\) .* expected an integer, got float 2.0"),
        ((None, None, "2", 1.0), "expected an integer, got str '2'"),
        ((None, None, torch.tensor(2), 1.0), "expected an integer, got a tensor"),
        ((None, None, None, 1.0), "expected an integer, got NoneType"),
        ((None, None, 2, torch.tensor(1.0)), "expected a number, got a tensor"),
        ((None, None, 2, "1"), "expected a number, got str '1'"),
        ((torch.empty(2, device="meta"), None, 1, 1.0), "tensor on the CPU, got one on meta"),
    ],
)
def test_wrong_arguments_are_refused_with_the_prototype(
    kernels: Library, arguments: tuple[object, ...], problem: str
) -> None:
    prototype = r"void scale\(const float\* x, float\* y, int64_t n, float factor\)"
    with pytest.raises(TypeError, match=f"{problem}.*{prototype}"):
        kernels.scale(*arguments)


def test_a_float_is_not_a_bool(kernels: Library) -> None:
    with pytest.raises(TypeError, match=r"argument 1 \('a'\) of spread: expected a bool"):
        kernels.spread(1.0, *[0] * 11, None)


def test_arguments_by_name_are_refused_with_the_prototype(kernels: Library) -> None:
    with pytest.raises(TypeError, match=r"by position, got wanted=.*int threads\(int wanted\)"):
        kernels.threads(wanted=2)


def test_a_function_with_an_unsupported_type_is_refused_when_called(kernels: Library) -> None:
    function = kernels.unsupported
    with pytest.raises(TypeError, match=r"parameter `std::vector<float> v`.*void unsupported"):
        function(None)


@pytest.mark.parametrize("name", ["missing", "never_emitted", "exp", "omp_get_num_threads"])
def test_a_missing_function_is_explained(kernels: Library, name: str) -> None:
    exports = "is_null, meet, nothing, scale, spread, threads, unsupported"
    with pytest.raises(AttributeError, match=rf"no function '{name}'.*{exports}.*extern \"C\""):
        getattr(kernels, name)


def test_a_declared_function_of_another_library_is_no_kernel(
    compile_library: Callable[[str], Library],
) -> None:
    library = compile_library('extern "C" int abs(int x);\nextern "C" int f(int x) { return x; }')
    with pytest.raises(AttributeError, match="no function 'abs'; it exports: f"):
        library.abs(-1)


def test_a_library_without_functions_says_so(compile_library: Callable[[str], Library]) -> None:
    with pytest.raises(AttributeError, match="it exports: nothing"):
        compile_library("int f(int x) { return x; }").f(1)


def test_functions_are_made_once_and_describe_themselves(kernels: Library) -> None:
    assert kernels.nothing is kernels.nothing
    assert kernels.nothing() == 7
    assert kernels.nothing.__doc__ == "int nothing()"
    assert "scale" in dir(kernels)
    assert "scale" in repr(kernels)


def test_a_module_that_holds_a_library_can_be_copied(kernels: Library) -> None:
    class Holder(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kernels = kernels

    assert copy.deepcopy(Holder()).kernels.nothing() == 7
