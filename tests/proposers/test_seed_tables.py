"""Loops that load from computed places: which get tables, and what they compute."""

from __future__ import annotations

import pytest
import torch

from kernel_smith.inline import cpp
from kernel_smith.proposers.seed.cpp_text import cpp_source
from kernel_smith.proposers.seed.cpp_vectors import with_vectors

STRETCH = """extern "C" void stretch(const float* in_ptr0, const float* in_ptr1, float* out_ptr0)
{
    #pragma omp parallel
    {
        #pragma omp for
        for(int64_t x0=0; x0<5; x0+=1)
        {
            #pragma GCC ivdep
            for(int64_t x1=0; x1<83; x1+=1)
            {
                {
                    auto tmp0 = x1;
                    auto tmp1 = c10::convert<float>(tmp0);
                    auto tmp2 = static_cast<float>(0.35);
                    auto tmp3 = float(tmp1 * tmp2);
                    auto tmp4 = c10::convert<int64_t>(tmp3);
                    auto tmp5 = in_ptr0[tmp4 + 31L*x0];
                    auto tmp6 = static_cast<int64_t>(30);
                    auto tmp7 = int64_t(tmp4 + 1);
                    auto tmp8 = min_propagate_nan(tmp7, tmp6);
                    auto tmp9 = in_ptr0[tmp8 + 31L*x0];
                    auto tmp10 = c10::convert<float>(tmp4);
                    auto tmp11 = float(tmp3 - tmp10);
                    auto tmp12 = x0;
                    auto tmp13 = c10::convert<float>(tmp12);
                    auto tmp14 = float(tmp9 - tmp5);
                    auto tmp15 = float(tmp14 * tmp11);
                    auto tmp16 = in_ptr1[x0];
                    auto tmp17 = float(tmp16 * tmp13);
                    auto tmp18 = float(tmp5 + tmp15);
                    auto tmp19 = float(tmp18 + tmp17);
                    out_ptr0[x1 + 83L*x0] = tmp19;
                }
            }
        }
    }
}
"""
# Places that are themselves loaded stay in the loop, beside a table.
PICK = """extern "C" void pick(const float* in_ptr0, const int64_t* in_ptr1, float* out_ptr0)
{
    for(int64_t x0=0; x0<5; x0+=1)
    {
        #pragma GCC ivdep
        for(int64_t x1=0; x1<31; x1+=1)
        {
            auto tmp0 = in_ptr1[x1 + 31L*x0];
            auto tmp1 = in_ptr0[tmp0];
            auto tmp2 = x1;
            auto tmp3 = c10::convert<float>(tmp2);
            auto tmp4 = float(tmp1 * tmp3);
            out_ptr0[x1 + 31L*x0] = tmp4;
        }
    }
}
"""


def test_what_depends_on_the_column_alone_is_computed_once() -> None:
    text = with_vectors(STRETCH)
    head, nest = text.split("#pragma omp parallel")
    assert "int64_t tmp4_by_x1[83];" in head and "float tmp11_by_x1[83];" in head
    inner = nest.split("for(int64_t x1=0")[1]
    assert "auto tmp4 = apart(tmp4_by_x1[x1]);" in inner and "tmp3" not in inner
    assert "auto tmp13 = " in nest.split("for(int64_t x1=0")[0], "the same for the row"
    assert "auto tmp17 = float(tmp16 * tmp13);" in inner, "needs what is loaded"
    assert "simd" not in nest


def test_tables_compute_the_same() -> None:
    texts = [
        STRETCH.replace("void stretch", "void plain"),
        with_vectors(STRETCH),
        with_vectors(PICK),
    ]
    assert "apart(in_ptr1[x1 + 31L*x0])" in texts[2] and "float tmp3_by_x1[31];" in texts[2]
    kernels = cpp(cpp_source(texts))
    x, scales = torch.randn(5, 31), torch.randn(5)
    expected, found = torch.empty(5, 83), torch.empty(5, 83)
    kernels.plain(x, scales, expected)
    kernels.stretch(x, scales, found)
    torch.testing.assert_close(found, expected)
    places, picked = torch.randint(0, x.numel(), (5, 31)), torch.empty(5, 31)
    kernels.pick(x, places, picked)
    torch.testing.assert_close(picked, x.flatten()[places] * torch.arange(31))


@pytest.mark.parametrize(
    ("line", "instead"),
    [
        ("auto tmp17 = float(tmp16 * tmp13);", "auto tmp17 = std::exp(tmp16);"),
        ("x1<83", "x1<8300"),
        ("auto tmp11 = float(tmp3 - tmp10);", "auto tmp11 = tmp3 - tmp10;"),
        ("auto tmp15 = float(tmp14 * tmp11);", "auto tmp15 = [=]\n{\nreturn tmp14;\n}\n();"),
    ],
    ids=["functions are better in vectors", "too long", "of unknown type", "of several lines"],
)
def test_other_loops_are_left_as_they_are(line: str, instead: str) -> None:
    assert "_by_x1" not in with_vectors(STRETCH.replace(line, instead))
