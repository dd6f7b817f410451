"""Sums of columns in C++ seeds: side by side, and what they compute."""

from __future__ import annotations

import pytest
import torch

from kernel_smith.inline import Library, cpp
from kernel_smith.proposers.seed.cpp_text import cpp_source
from kernel_smith.proposers.seed.cpp_vectors import with_vectors

ROWS, COLUMNS, FEW = 37, 1001, 12

# Deviations from what is expected, and the largest: what is the same for all rows is read before.
DEVIATIONS = f"""extern "C" void deviations(
    const float* in_ptr0, const float* in_ptr1, float* out_ptr0, float* out_ptr1)
{{
    #pragma omp parallel
    {{
        #pragma omp for
        for(int64_t x0=0; x0<{COLUMNS}; x0+=1)
        {{
            {{
                float tmp_acc0 = 0;
                float tmp_acc1 = -std::numeric_limits<float>::infinity();
                auto tmp1 = in_ptr1[x0];
                for(int64_t x1=0; x1<{ROWS}; x1+=1)
                {{
                    {{
                        auto tmp0 = in_ptr0[x0 + {COLUMNS}L*x1];
                        auto tmp2 = tmp0 - tmp1;
                        auto tmp3 = tmp2 * tmp2;
                        tmp_acc0 = tmp_acc0 + tmp3;
                        tmp_acc1 = max_propagate_nan(tmp_acc1, tmp2);
                    }}
                }}
                out_ptr0[x0] = tmp_acc0;
                out_ptr1[x0] = tmp_acc1;
            }}
        }}
    }}
}}
"""
# As the compiler shares it out among threads.
FEW_COLUMNS = f"""extern "C" void few_columns(const float* in_ptr0, float* out_ptr0)
{{
    {{
        #pragma GCC ivdep
        for(int64_t x0=0; x0<{FEW}; x0+=1)
        {{
            {{
                float tmp_acc0 = 0;
                int max_threads = omp_get_max_threads();
                float tmp_acc0_arr[max_threads];
                for (int i = 0; i < max_threads; i++)
                {{
                    tmp_acc0_arr[i] = 0;
                }}
                #pragma omp parallel
                {{
                    int tid = omp_get_thread_num();
                    float tmp_acc0_local = 0;
                    #pragma omp for
                    for(int64_t x1=0; x1<{ROWS * COLUMNS // FEW}; x1+=1)
                    {{
                        {{
                            auto tmp0 = in_ptr0[x0 + {FEW}L*x1];
                            tmp_acc0_local = tmp_acc0_local + tmp0;
                        }}
                    }}
                    tmp_acc0_arr[tid] = tmp_acc0_local;
                }}
                for (int tid = 0; tid < max_threads; tid++)
                {{
                    tmp_acc0 = tmp_acc0 + tmp_acc0_arr[tid];
                }}
                out_ptr0[x0] = tmp_acc0;
            }}
        }}
    }}
}}
"""


@pytest.fixture(scope="module")
def kernels() -> Library:
    return cpp(cpp_source([with_vectors(DEVIATIONS), with_vectors(FEW_COLUMNS)]))


@pytest.mark.parametrize("text", [DEVIATIONS, FEW_COLUMNS])
def test_rows_come_one_after_the_other(text: str) -> None:
    found = with_vectors(text)
    assert found.index("for(int64_t x1=0") < found.index("in_ptr0[x0")
    assert found.count("#pragma omp simd") == 3


def test_threads_have_columns_of_their_own_and_share_no_rows() -> None:
    shared = with_vectors(DEVIATIONS)
    assert "#pragma omp for\n        for(int64_t x0_block=0" in shared
    assert "omp parallel" not in with_vectors(FEW_COLUMNS)


def test_a_loop_that_writes_before_it_adds_up_stays_as_it_is() -> None:
    read = "                auto tmp1 = in_ptr1[x0];\n"
    writes = DEVIATIONS.replace(read, f"{read}                out_ptr2[x0] = tmp1;\n")
    assert "_block" in with_vectors(DEVIATIONS) and "_block" not in with_vectors(writes)


def test_sums_side_by_side_are_right(kernels: Library) -> None:
    draw = torch.Generator().manual_seed(1)
    x, expected = torch.randn(ROWS, COLUMNS, generator=draw), torch.randn(COLUMNS, generator=draw)
    squares, largest = torch.empty(COLUMNS), torch.empty(COLUMNS)
    x[5, 999] = torch.nan
    kernels.deviations(x, expected, squares, largest)
    torch.testing.assert_close(squares, (x - expected).square().sum(0), equal_nan=True)
    torch.testing.assert_close(largest, (x - expected).amax(0), equal_nan=True)


def test_few_columns_of_many_rows_are_right(kernels: Library) -> None:
    x = torch.randn(ROWS * COLUMNS // FEW, FEW, generator=torch.Generator().manual_seed(2))
    sums = torch.empty(FEW)
    kernels.few_columns(x, sums)
    torch.testing.assert_close(sums, x.sum(0), rtol=1e-4, atol=1e-4)
