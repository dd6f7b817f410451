"""Additions that threads may meet at: when they need no lock, and that nothing is lost."""

from __future__ import annotations

import pytest
import torch

from kernel_smith.inline import Library, cpp
from kernel_smith.proposers.seed.cpp_atomics import with_plain_additions
from kernel_smith.proposers.seed.cpp_text import cpp_source

ROWS, COLUMNS, PLACES = 5000, 19, 37

THREADS = 'extern "C" void use_threads(int64_t count) { omp_set_num_threads(count); }'
ROWS_ADDED = """extern "C" void add(const int64_t* in_ptr0, const float* in_ptr1, float* out_ptr0)
{
    #pragma omp parallel
    {
        int tid = omp_get_thread_num();
        #pragma omp for
        for(int64_t x0=0; x0<5000; x0+=1)
        {
            #pragma GCC ivdep
            for(int64_t x1=0; x1<19; x1+=1)
            {
                {
                    auto tmp0 = in_ptr0[x0];
                    auto tmp1 = in_ptr1[x1 + 19L*x0];
                    atomic_add(&out_ptr0[x1 + 19L*tmp0], static_cast<float>(tmp1));
                }
            }
        }
    }
}
"""
ELEMENTS_ADDED = """extern "C" void count(const int64_t* in_ptr0, float* out_ptr0)
{
    #pragma omp parallel
    {
        int tid = omp_get_thread_num();
        #pragma omp for
        for(int64_t x0=0; x0<5000; x0+=1)
        {
            auto tmp0 = in_ptr0[x0];
            auto tmp1 = 1.0f;
            atomic_add(&out_ptr0[tmp0], static_cast<float>(tmp1));
        }
    }
}
"""
SCATTERED = ROWS_ADDED.replace("void add", "void scatter").replace(
    "in_ptr0[x0]", "in_ptr0[x1 + x0]"
)


@pytest.fixture(scope="module")
def kernels() -> Library:
    texts = [with_plain_additions(text) for text in (ROWS_ADDED, ELEMENTS_ADDED, SCATTERED)]
    return cpp(cpp_source([*texts, THREADS]))


def test_rows_become_vectors_where_a_thread_is_alone() -> None:
    text = with_plain_additions(ROWS_ADDED)
    assert "const bool alone = omp_get_num_threads() == 1;" in text
    assert text.count("#pragma omp simd") == 1
    assert text.count("out_ptr0[x1 + 19L*tmp0] += ") == text.count("atomic_add(&") == 1
    assert "ivdep" not in text


def test_iterations_that_may_meet_are_no_vector() -> None:
    text = with_plain_additions(SCATTERED)
    assert "if (alone)" in text and "#pragma omp simd" not in text and "ivdep" not in text


def test_a_loop_that_threads_share_stays_behind_its_pragma() -> None:
    text = with_plain_additions(ELEMENTS_ADDED)
    assert "#pragma omp for\n        for(" in text
    assert "if (alone) out_ptr0[tmp0] += static_cast<float>(tmp1); else atomic_add(" in text


def test_where_there_is_one_thread_nothing_is_locked() -> None:
    serial = ELEMENTS_ADDED.replace("        int tid = omp_get_thread_num();\n", "")
    assert "atomic_add" not in with_plain_additions(serial)
    assert with_plain_additions("no additions") == "no additions"


@pytest.mark.parametrize("threads", [1, 2])
def test_nothing_is_lost(kernels: Library, threads: int) -> None:
    places = torch.randint(PLACES, (ROWS + COLUMNS,))
    x = torch.randint(9, (ROWS, COLUMNS)).float()  # whole numbers, so that order is the same
    rows, counts, scattered = torch.zeros(PLACES, COLUMNS), torch.zeros(PLACES), torch.zeros(999)
    kernels.use_threads(threads)
    kernels.add(places, x, rows)
    kernels.count(places, counts)
    kernels.scatter(places, x, scattered)
    kernels.use_threads(1)
    assert torch.equal(rows, torch.zeros_like(rows).index_add(0, places[:ROWS], x))
    assert torch.equal(counts, torch.bincount(places[:ROWS], minlength=PLACES).float())
    assert scattered.sum() == x.sum()
