"""Every C++ edit on an example: it says what it should, compiles, and computes the same."""

from __future__ import annotations

import ctypes
import itertools
import math
import random
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from kernel_smith.inline.toolchain import find_toolchain
from kernel_smith.proposers.mutator import EDITS, Edit
from kernel_smith.proposers.mutator.cpp.edits import CPP_EDITS
from kernel_smith.proposers.mutator.cpp.text import cpp_texts

Function = Callable[..., object]
Compiled = Callable[[str], Function]

HEADERS = ("algorithm", "cmath", "cstdint", "cstring", "vector")
SIGNATURE = "(const float* x, const float* w, float* y, int64_t rows, int64_t columns)"

ROW_SUMS = """
    for (int64_t r = 0; r < rows; ++r) {
        float sum = 0.0f;
        for (int64_t c = 0; c < columns; ++c) sum += x[r * columns + c] * w[c];
        y[r] = sum;
    }
"""
SOFTMAX = """
    for (int64_t r = 0; r < rows; ++r) {
        const float* in = x + r * columns;
        float* out = y + r * columns;
        float largest = in[0];
        for (int64_t c = 1; c < columns; ++c) largest = in[c] > largest ? in[c] : largest;
        double sum = 0.0;
        for (int64_t c = 0; c < columns; ++c) {
            out[c] = std::exp(in[c] - largest);
            sum += out[c];
        }
        for (int64_t c = 0; c < columns; ++c) out[c] = static_cast<float>(out[c] / sum);
    }
"""
OUTER_PRODUCT = """
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) {
            y[r * columns + c] = x[r] * w[c] + std::tanh(x[r]);
        }
    }
"""
BUFFERED = """
    std::vector<float> row(columns);
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) row[c] = x[r * columns + c] * 2.0f;
        for (int64_t c = 0; c < columns; ++c) y[r * columns + c] = row[columns - 1 - c];
    }
"""
THREADED = f"\n    #pragma omp parallel for\n    {OUTER_PRODUCT.lstrip()}"
QUOTIENT = """
    for (int64_t i = 0; i < rows * columns; ++i) y[i] = x[i] * w[i / columns] + w[i % columns];
"""
WINDOWS = """
    for (int64_t c = 0; c < columns; ++c) {
        float sum = 0.0f;
        for (int64_t f = 0; f < 5; ++f) {
            const int64_t at = c + f - 2;
            if (at < 0 || at >= columns) continue;
            sum += x[at] * w[f];
        }
        y[c] = sum;
    }
"""
SCALED = """
    for (int64_t r = 0; r < rows; ++r) {
        for (int64_t c = 0; c < columns; ++c) y[r * columns + c] = x[r * columns + c] * w[r];
    }
"""
FLAGS = """
    std::vector<bool> taken(columns, false);
    for (int64_t c = 0; c < columns; ++c) taken[c] = x[c] > 0.0f;
    for (int64_t c = 0; c < columns; ++c) y[c] = taken[c] ? 1.0f : 2.0f;
"""
THRICE = """
    for (int64_t r = 0; r < rows; ++r) {
        float sum = 0.0f;
        {
            for (int64_t c = 0; c < columns; ++c) {
                const float a = x[r * columns + c] + w[c];
                const float b = std::tanh(a) * a;
                sum += b;
            }
        }
        const float mean = sum / columns;
        float spread = 0.0f;
        #pragma omp simd reduction(+:spread)
        for (int64_t i = 0; i < columns; ++i) {
            const float first = x[r * columns + i] + w[i];
            const float second = std::tanh(first) * first;
            spread += (second - mean) * (second - mean);
        }
        {
            for (int64_t c = 0; c < columns; ++c) {
                const float a = x[r * columns + c] + w[c];
                const float b = std::tanh(a) * a;
                y[r * columns + c] = (b - mean) / (1.0f + spread) + a;
            }
        }
    }
"""
FOUR_COLUMNS = """
    for (int64_t r = 0; r < rows; ++r) {
        float sum = 0.0f;
        for (int64_t c = 0; c < 4; ++c) sum += std::exp(x[4 * r + c]);
        for (int64_t c = 0; c < 4; ++c) y[4 * r + c] = std::exp(x[4 * r + c]) / sum;
    }
"""

# The name of an edit, a function to which it applies, and something that the result contains.
EXAMPLES = [
    ("parallelise-loop", ROW_SUMS, "#pragma omp parallel for\n"),
    ("collapse-loops", OUTER_PRODUCT, "collapse(2)"),
    ("collapse-loops", THREADED, "#pragma omp parallel for collapse(2)\n"),
    ("schedule-loop", THREADED, "schedule(dynamic"),
    ("private-buffer", BUFFERED, "{\n        std::vector<float> row(columns);"),
    ("simd-loop", ROW_SUMS, "#pragma omp simd reduction(+:sum)"),
    ("simd-loop", SOFTMAX, "#pragma omp simd reduction(max:largest)"),
    ("unroll-loop", SOFTMAX, "#pragma GCC unroll 4"),
    ("split-accumulator", ROW_SUMS, "sum_1 = 0, sum_2 = 0"),
    ("split-accumulator", SOFTMAX, "largest_1 > largest ? largest_1 : largest"),
    ("specialise-bound", ROW_SUMS, "if (columns == 64)"),
    ("interchange-loops", OUTER_PRODUCT, "for (int64_t c = 0; c < columns; ++c) {\n        for"),
    ("tile-loops", OUTER_PRODUCT, "std::min<int64_t>(c_tile + 16, columns)"),
    ("jam-iterations", ROW_SUMS, "float sum_lanes[4];"),
    ("jam-iterations", WINDOWS, "sum_lanes[c_lane] += x[at] * w[f];"),
    ("split-by-quotient", QUOTIENT, "w[i_quotient]"),
    ("narrow-range", WINDOWS, "std::max<int64_t>(0, 0 - (c + 0 - 2))"),
    ("multiply-by-reciprocal", SOFTMAX, "const double sum_inverse = 1.0 / sum;"),
    ("hoist-loads", SCALED, "const auto w_kept_0 = w[r];"),
    ("keep-values", THRICE, "std::vector<float> kept_row(columns);"),
    ("keep-values", THRICE, "const float second = kept_row[i];"),
    ("keep-values", FOUR_COLUMNS, "float kept_row[4];"),
    ("keep-values", FOUR_COLUMNS, "sum += (kept_row[c] = std::exp(x[4 * r + c]));"),
    ("single-precision", SOFTMAX, "float sum = 0.0f;"),
    ("restrict-parameters", ROW_SUMS, "const float* __restrict__ x"),
    ("byte-flags", FLAGS, "std::vector<char> taken"),
    ("vector-exponential", SOFTMAX, "vector_exp(in[c] - largest)"),
    ("vector-exponential", OUTER_PRODUCT, "vector_tanh(x[r])"),
]

# Loops whose iterations may not run in any order, and none of which can be shared or vectorised.
DEPENDENT = {
    "prefix sum": "for (int64_t i = 1; i < columns; ++i) y[i] = y[i - 1] + x[i];",
    "carried state": """float s = 0.0f;
        for (int64_t i = 0; i < columns; ++i) { s = 0.5f * s + x[i]; y[i] = s; }""",
    "running sum": """float s = 0.0f;
        for (int64_t i = 0; i < columns; ++i) { s += x[i]; y[i] = s; }""",
    "gathered target": """
        for (int64_t i = 0; i < columns; ++i) y[static_cast<int64_t>(w[i])] += x[i];""",
    "same target": "for (int64_t i = 0; i < columns; ++i) y[i / 2] += x[i];",
    "one element": "for (int64_t i = 0; i < columns; ++i) y[0] = x[i];",
    "early end": """
        for (int64_t i = 0; i < columns; ++i) { if (x[i] < 0.0f) break; y[i] = x[i]; }""",
    "return": """
        for (int64_t i = 0; i < columns; ++i) { if (x[i] < 0.0f) return; y[i] = x[i]; }""",
    "growing vector": """std::vector<float> v;
        for (int64_t i = 0; i < columns; ++i) v.push_back(x[i]);""",
    "moving pointer": "for (int64_t i = 0; i < columns; ++i) *y++ = x[i];",
    "neighbouring rows": """
        for (int64_t r = 1; r < rows; ++r) y[r * columns] = y[(r - 1) * columns] + x[r];""",
    "index of the largest": """int64_t best = 0;
        for (int64_t i = 1; i < columns; ++i) { if (x[i] > x[best]) best = i; }
        y[0] = x[best];""",
}

# Loops that seem to compute the same value twice, and must not share it.
ANOTHER_VALUE = {
    "written between": """
        for (int64_t i = 0; i < columns; ++i) y[i] = std::exp(x[i]) + std::exp(y[i]);
        for (int64_t i = 0; i < columns; ++i) y[i] += std::exp(y[i]);""",
    "written through another name": """const float* in = y; float* out = y;
        for (int64_t i = 0; i < columns; ++i) out[i] = std::exp(in[i]);
        for (int64_t i = 0; i < columns; ++i) out[i] += std::exp(in[i]);""",
    "written by a function": """float sum = 0.0f;
        for (int64_t i = 0; i < columns; ++i) sum += std::exp(y[i]);
        std::memcpy(y, x, columns * sizeof(float));
        for (int64_t i = 0; i < columns; ++i) y[i] = std::exp(y[i]) / sum;""",
    "another scale": """float scale = 1.0f, sum = 0.0f;
        for (int64_t i = 0; i < columns; ++i) sum += std::exp(x[i] * scale);
        scale = 2.0f;
        for (int64_t i = 0; i < columns; ++i) y[i] = std::exp(x[i] * scale) / sum;""",
    "a scale of each block": """float sum = 0.0f;
        { const float s = w[0];
          for (int64_t i = 0; i < columns; ++i) sum += std::exp(x[i] * s); }
        { const float s = w[1];
          for (int64_t i = 0; i < columns; ++i) y[i] = std::exp(x[i] * s) / sum; }""",
    "only sometimes": """float sum = 0.0f;
        for (int64_t i = 0; i < columns; ++i) { if (x[i] > 0.0f) sum += std::exp(x[i]); }
        for (int64_t i = 0; i < columns; ++i) y[i] = std::exp(x[i]) / sum;""",
    "not always there": """float sum = 0.0f;
        if (rows > 3) { for (int64_t i = 0; i < columns; ++i) sum += std::exp(x[i]); }
        for (int64_t i = 0; i < columns; ++i) y[i] = std::exp(x[i]) / (1.0f + sum);""",
    "another range": """float sum = 0.0f;
        for (int64_t i = 0; i < rows; ++i) sum += std::exp(x[i]);
        for (int64_t i = 0; i < columns; ++i) y[i] = std::exp(x[i]) / sum;""",
    "by other threads": """float sum = 0.0f;
        #pragma omp parallel for reduction(+:sum)
        for (int64_t i = 0; i < columns; ++i) sum += std::exp(x[i]);
        #pragma omp parallel for
        for (int64_t i = 0; i < columns; ++i) y[i] = std::exp(x[i]) / sum;""",
    "nothing worth keeping": """float sum = 0.0f;
        for (int64_t i = 0; i < columns; ++i) sum += x[i] * w[i];
        for (int64_t i = 0; i < columns; ++i) y[i] = x[i] * w[i] / sum;""",
}


def candidate(body: str) -> str:
    includes = "".join(f"#include <{header}>\n" for header in HEADERS)
    text = f'\n{includes}\nextern "C" void f{SIGNATURE} {{{body}}}\n'
    return f'from kernel_smith.inline import cpp\n\nSOURCE = r"""{text}"""\nkernels = cpp(SOURCE)\n'


def edit_named(name: str) -> Edit:
    return next(edit for edit in EDITS if edit.name == name)


def text_of(source: str) -> str:
    return cpp_texts(source)[0].text


def all_versions() -> Iterator[tuple[str, str, str]]:
    """What was done, and the text before and after it."""
    for name, body, _ in EXAMPLES:
        before = candidate(body)
        for site in edit_named(name).sites(before):
            yield f"{name}, {site}", text_of(before), text_of(edit_named(name).apply(before, site))


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    """The function of a text. All texts are in one library, each once."""
    texts = [text for _, before, after in all_versions() for text in (before, after)]
    numbers = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    parts = [f"#include <{header}>\n" for header in HEADERS]
    for text, number in numbers.items():
        renamed = text.replace('extern "C" void f(', f'extern "C" void f_{number}(')
        parts.append(f"namespace of_{number} {{\n{renamed}\n}}\n")
    folder = tmp_path_factory.mktemp("edits")
    (folder / "all.cpp").write_text("".join(parts))
    flags = ["-std=c++17", "-O0", "-fopenmp", "-shared", "-fPIC"]
    command = [str(find_toolchain("cpp").compiler), *flags, "all.cpp", "-o", "all.so"]
    subprocess.run(command, cwd=folder, check=True)
    library = ctypes.CDLL(str(folder / "all.so"))
    return lambda text: getattr(library, f"f_{numbers[text]}")


def results(function: Function, rows: int, columns: int) -> list[float]:
    rng = random.Random(rows)
    count = rows * columns + 8
    buffers = [(ctypes.c_float * count)(*(rng.gauss(0, 1) for _ in range(count))) for _ in "xw"]
    target = (ctypes.c_float * count)()
    function(*buffers, target, ctypes.c_int64(rows), ctypes.c_int64(columns))
    return list(target)


def test_edited_functions_compute_the_same(compiled: Compiled) -> None:
    for what, before, after in all_versions():
        for rows, columns in ((3, 4), (70, 37), (5, 64)):
            expected = results(compiled(before), rows, columns)
            found = results(compiled(after), rows, columns)
            # Element by element, because `pytest.approx` takes longer than all the rest.
            wrong = [
                pair
                for pair in zip(found, expected, strict=True)
                if not math.isclose(*pair, rel_tol=2e-5, abs_tol=2e-5)
            ]
            assert wrong == [], what


@pytest.mark.parametrize(("name", "body", "expected"), EXAMPLES)
def test_an_edit_writes_what_its_name_says(name: str, body: str, expected: str) -> None:
    source = candidate(body)
    written = [text_of(edit_named(name).apply(source, s)) for s in edit_named(name).sites(source)]
    assert any(expected in text for text in written), written


def test_every_cpp_edit_has_an_example() -> None:
    assert {edit.name for edit in CPP_EDITS} == {name for name, _, _ in EXAMPLES}


@pytest.mark.parametrize("what", DEPENDENT)
@pytest.mark.parametrize(
    "name", ["parallelise-loop", "simd-loop", "split-accumulator", "private-buffer"]
)
def test_dependent_iterations_are_left_alone(what: str, name: str) -> None:
    assert edit_named(name).sites(candidate(DEPENDENT[what])) == []


def test_a_loop_in_a_threaded_loop_is_not_threaded_again() -> None:
    assert edit_named("parallelise-loop").sites(candidate(THREADED)) == []


def test_overlapping_targets_of_an_outer_loop_are_noticed() -> None:
    scatter = """
        for (int64_t i = 0; i < columns; ++i) {
            for (int64_t j = 0; j < rows; ++j) { y[i + j] += x[i] * w[j]; }
        }"""
    assert edit_named("parallelise-loop").sites(candidate(scatter)) == []
    assert edit_named("interchange-loops").sites(candidate(scatter)) == []


def test_a_buffer_that_carries_a_state_stays_shared() -> None:
    carried = """
        std::vector<float> sums(columns, 0.0f);
        for (int64_t r = 0; r < rows; ++r) {
            for (int64_t c = 0; c < columns; ++c) sums[c] += x[r * columns + c];
            for (int64_t c = 0; c < columns; ++c) y[r * columns + c] = sums[c];
        }"""
    assert edit_named("private-buffer").sites(candidate(carried)) == []


def test_integers_are_not_divided_by_reciprocals() -> None:
    body = "for (int64_t i = 0; i < columns; ++i) y[i] = x[i / rows];"
    assert edit_named("multiply-by-reciprocal").sites(candidate(body)) == []


SEED = """
    for (int64_t r = 0; r < rows; ++r) {
        auto sum = w[r];
        for (int64_t i = 0; i < columns; ++i) {
            auto some = x[i + columns * r];
            auto more = float(some / sum);
            y[i + columns * r] = more;
        }
    }"""


def test_what_a_seed_divides_by_is_a_number_whose_type_it_does_not_spell() -> None:
    edit = edit_named("multiply-by-reciprocal")
    (site,) = edit.sites(candidate(SEED))
    assert "const float sum_inverse = 1.0f / sum;" in edit.apply(candidate(SEED), site)
    assert "float(some * sum_inverse)" in edit.apply(candidate(SEED), site)
    whole = SEED.replace("w[r]", "static_cast<int64_t>(w[r])")
    assert edit.sites(candidate(whole)) == []
    chain = "".join(f"auto a{n + 1} = a{n} * a{n};\n" for n in range(60))
    deep = SEED.replace("auto sum = w[r];", f"auto a0 = w[r];\n{chain}auto sum = a60;")
    assert len(edit.sites(candidate(deep))) == 1


def test_functions_for_several_workloads_are_changed_together() -> None:
    edit = edit_named("multiply-by-reciprocal")
    two = candidate(f'{SEED}}}\nextern "C" void g{SIGNATURE} {{{SEED}')
    *single, both = edit.sites(two)
    assert len(single) == 2 and str(both) == "the first place of each function"
    assert edit.apply(two, both).count("some * sum_inverse") == 2


@pytest.mark.parametrize("what", ANOTHER_VALUE)
def test_a_value_that_is_worth_it_is_computed_again(what: str) -> None:
    assert edit_named("keep-values").sites(candidate(ANOTHER_VALUE[what])) == []


def test_a_kept_value_leaves_nothing_behind() -> None:
    source, edit = candidate(THRICE), edit_named("keep-values")
    text = text_of(edit.apply(source, edit.sites(source)[0]))
    assert text.count("std::tanh") == 1 and "first" not in text
    assert text.count("const float a = ") == 2, "the last loop still needs it"
    assert edit.sites(edit.apply(source, edit.sites(source)[0])) == []


def test_long_chains_of_values_are_read_in_no_time() -> None:
    squares = "".join(f"const float a{n + 1} = a{n} * a{n};\n" for n in range(60))
    loop = f"for (int64_t c = 0; c < columns; ++c) {{ const float a0 = std::exp(x[c]); {squares}"
    source = candidate(f"float s = 0.0f;\n{loop} s += a60; }}\n{loop} y[c] = a60 / s; }}")
    (site,) = edit_named("keep-values").sites(source)
    assert "const float a60 = kept_row[c];" in edit_named("keep-values").apply(source, site)


def test_names_and_sentences_are_given_once() -> None:
    names = [edit.name for edit in EDITS]
    assert len(set(names)) == len(names) == len({edit.sentence for edit in EDITS})


def test_vector_exponential_is_close_over_the_whole_range(tmp_path: Path) -> None:
    source = candidate("for (int64_t i = 0; i < columns; ++i) y[i] = std::exp(x[i]);")
    edit = edit_named("vector-exponential")
    (tmp_path / "e.cpp").write_text(text_of(edit.apply(source, edit.sites(source)[0])))
    command = [
        str(find_toolchain("cpp").compiler),
        "-O1",
        "-shared",
        "-fPIC",
        "e.cpp",
        "-o",
        "e.so",
    ]
    subprocess.run(command, cwd=tmp_path, check=True)
    values = [x / 8 for x in range(-824, 710)] + [0.0, -1e4, 1e4, float("inf"), float("-inf")]
    given, got = (ctypes.c_float * len(values))(*values), (ctypes.c_float * len(values))()
    count = ctypes.c_int64(len(values))
    ctypes.CDLL(str(tmp_path / "e.so")).f(given, given, got, count, count)
    for x, y in zip(values, got, strict=True):
        exact = float("inf") if x > 88.72 else 2.718281828459045**x if x > -1e3 else 0.0
        assert y == pytest.approx(exact, rel=3e-7, abs=1.5e-45), x


def test_sites_do_not_depend_on_the_order_of_calls() -> None:
    source = candidate(SOFTMAX)
    forwards = [edit.sites(source) for edit in CPP_EDITS]
    backwards = [edit.sites(source) for edit in reversed(CPP_EDITS)]
    assert forwards == list(reversed(backwards))
    assert len(list(itertools.chain(*forwards))) > 20
