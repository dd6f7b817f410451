"""Which numbers the tuner finds, where they stand, and that writing others keeps the rest."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.programs.branches import Defined
from kernel_smith.proposers.tuner.apply import apply
from kernel_smith.proposers.tuner.cpp_numbers import find_cpp_numbers
from kernel_smith.proposers.tuner.find import find, structure
from kernel_smith.proposers.tuner.numbers import is_for_speed, words
from kernel_smith.proposers.tuner.space import Kind, Space, Values

TESTS = Path(__file__).parent.parent
HONEST = sorted(
    [*(TESTS / "honest" / "candidates").glob("*.py"), *(TESTS / "gpu" / "honest").glob("*.py")]
)

CPP = '''
from kernel_smith.inline import cpp

SOURCE = r"""
#include <cstdint>
// constexpr int kComment = 8;
#define UNROLL 4
constexpr int kTile = 32, kBits = 8;
static constexpr float kScale = 2.0f;
constexpr int64_t kRows{16};
extern "C" void f(const float* x, float* y, int64_t n) {
    const int64_t half = n / 2;
    const unsigned long chunk = 64ul;
    const char* text = "constexpr int kText = 8;";
    #pragma omp parallel for schedule(dynamic, 16) collapse(2) num_threads(2)
    for (int64_t i = 0; i < n; i += 8) y[i] = x[i] * 2;
    #pragma omp simd simdlen(8) aligned(x : 64)
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * 4;
    #pragma GCC unroll 8
    for (int64_t i = 0; i < n; ++i) y[i] = x[i] * 16;
}
"""
kernels = cpp(SOURCE, flags=("-O3", "-ffast-math", "-funroll-loops", "-DLANES=8", "-DWIDTH=3"))
'''

TRITON = """
import triton
import triton.language as tl

DEEP = 64


@triton.jit
def product(a, b, n, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, HEAD_DIM: tl.constexpr,
            EVEN: tl.constexpr, UNROLL: tl.constexpr = 4, EPS: tl.constexpr = 1e-6):
    for i in tl.range(0, n, BK, num_stages=3):
        pass


def launch(a, b, n):
    wide = 128
    grid = (triton.cdiv(n, 32), triton.cdiv(n, wide))
    product[grid](a, b, n, 32, BN=wide, BK=DEEP, HEAD_DIM=64, EVEN=True, num_warps=8 if n else 4)
"""

AUTOTUNED = """
import triton
import triton.language as tl


@triton.autotune(
    configs=[
        triton.Config({"BLOCK": 1024, "FAST": True}, num_warps=4),
        triton.Config({"BLOCK": 2048, "FAST": True}, num_warps=8),
    ],
    key=["n"],
)
@triton.jit
def kernel(x, n, BLOCK: tl.constexpr, FAST: tl.constexpr):
    pass
"""


def current(source: str) -> Values:
    return find(source).current


def domain(source: str, name: str) -> tuple[int | str, ...]:
    return next(tunable.domain for tunable in find(source).tunables if tunable.name == name)


def test_numbers_of_cpp_are_found_by_name_and_by_pragma() -> None:
    assert current(CPP) == {
        "UNROLL": 4,
        "kTile": 32,
        "kRows": 16,
        "chunk": 64,
        "schedule": "dynamic",
        "schedule_chunk": 16,
        "collapse": 2,
        "num_threads": 2,
        "simdlen": 8,
        "aligned": 64,
        "unroll": 8,
        "optimise": "-O3",
        "unroll_loops": "-funroll-loops",
        "LANES": 8,
    }


def test_numbers_in_branches_that_are_not_compiled_are_left_out() -> None:
    text = """
#include <cmath>
#if defined(__AVX512F__)
constexpr int LANES = 16;
#elif defined(__AVX2__)
constexpr int LANES = 8;
#else
#define UNROLL 4
#endif
"""

    def found(defined: Defined) -> list[int | str]:
        return [number.current for number in find_cpp_numbers(text, defined=defined)]

    assert found({}) == [16, 8, 4]
    assert found({"__AVX512F__": True}) == [16]
    assert found({"__AVX512F__": False, "__AVX2__": True}) == [8]
    assert found({"__AVX512F__": False}) == [8, 4]
    space = find(f'SOURCE = r"""{text}"""', {"__AVX512F__": True})
    assert [(each.name, each.current) for each in space.tunables] == [("LANES", 16)]


def test_numbers_of_a_launch_are_found_behind_names_and_positions() -> None:
    assert current(TRITON) == {
        "BM": 32,
        "BN": 128,
        "BK": 64,
        "num_warps": 8,
        "num_warps#2": 4,
        "UNROLL": 4,
        "range_num_stages": 3,
    }


def stages_of(body: str) -> bool:
    source = f"""
import triton
import triton.language as tl


@triton.jit
def looping(x, n):
    for i in tl.range(0, n):
        x += i
    return x


@triton.jit
def kernel(x, n, XBLOCK: tl.constexpr):
    {body}


def launch(x, n):
    kernel[(n,)](x, n, XBLOCK=1, num_warps=1, num_stages=2)
"""
    return "num_stages" in current(source)


def test_stages_are_for_kernels_that_loop() -> None:
    assert not stages_of("tl.store(x, n)")
    assert not stages_of("for i in tl.static_range(4): tl.store(x, i)")
    assert stages_of("for i in range(n): tl.store(x, i)")
    assert stages_of("while n > 0: n -= 1")
    assert stages_of("tl.store(x, looping(x, n))")


def test_stages_among_configurations_are_for_kernels_that_loop() -> None:
    listed = AUTOTUNED.replace("num_warps=4", "num_warps=4, num_stages=2")
    listed = listed.replace("num_warps=8", "num_warps=8, num_stages=3")
    assert "num_stages" not in current(listed)
    assert current(listed.replace("    pass", "    for i in range(n): pass"))["num_stages"] == 2


def test_a_block_may_be_one_element_long() -> None:
    source = TRITON.replace("BM", "XBLOCK").replace("n, 32", "n, 1")
    assert current(source)["XBLOCK"] == 1
    assert domain(source, "XBLOCK") == (1, 2, 4, 8, 16)
    assert domain(TRITON, "BM") == tuple(1 << power for power in range(1, 10))


def test_a_block_size_changes_together_with_its_grid() -> None:
    changed = apply(find(TRITON), {"BM": 64})
    assert "triton.cdiv(n, 64), triton.cdiv(n, wide)" in changed
    assert "(a, b, n, 64, BN=wide" in changed


def test_a_count_of_programs_that_the_kernel_is_given_changes_with_its_grid() -> None:
    small = TRITON.replace("n, 32)", "56, 8)").replace("n, 32, BN", "n, 8, BN")
    told = small.replace("EVEN=True", "EVEN=True, programs=triton.cdiv(56, 8), other=n * 8")
    changed = apply(find(told), {"BM": 4})
    assert "programs=triton.cdiv(56, 4)" in changed
    assert "other=n * 8" in changed, "not what the grid counts"


def test_a_size_of_the_problem_that_equals_the_block_stays() -> None:
    source = TRITON.replace("triton.cdiv(n, 32)", "triton.cdiv(32, 32)")
    assert "triton.cdiv(32, 64)" in apply(find(source), {"BM": 64})


def test_two_sizes_that_a_grid_cannot_tell_apart_are_one_number() -> None:
    source = TRITON.replace("n, 32)", "n, 32) * triton.cdiv(n, 32)").replace("BK=DEEP", "BK=32")
    space = find(source)
    assert "BK" not in space.current
    changed = apply(space, {"BM": 16})
    assert "BK=16" in changed
    assert "32" not in changed


def test_a_buffer_that_is_sized_by_the_block_changes_with_it() -> None:
    source = TRITON.replace("wide = 128", "wide = 128; parts = n // 32").replace("cdiv(n, 32)", "n")
    assert "parts = n // 8" in apply(find(source), {"BM": 8})


def test_a_list_of_configurations_becomes_the_one_that_was_chosen() -> None:
    space = find(AUTOTUNED)
    assert space.current == {"BLOCK": 1024, "num_warps": 4}
    assert space.alternatives == ({"BLOCK": 2048, "num_warps": 8},)
    changed = apply(space, {"BLOCK": 512})
    assert changed.count("triton.Config") == 1
    assert 'triton.Config({"BLOCK": 512, "FAST": True}, num_warps=4)' in changed
    assert structure(find(changed)) == structure(space)


def test_configurations_of_different_forms_are_left_alone() -> None:
    source = AUTOTUNED.replace('"BLOCK": 2048, "FAST"', '"OTHER": 2048, "FAST"')
    assert current(source) == {}


def test_declared_numbers_are_taken_where_they_stand() -> None:
    source = 'TUNABLES = {"BLOCK": 96}\nx = TUNABLES["BLOCK"]\n'
    space = find(source)
    assert space.current == {"BLOCK": 96}
    assert apply(space, {"BLOCK": 48}).startswith('TUNABLES = {"BLOCK": 48}\n')


def test_a_declared_list_is_the_domain_of_the_constant_it_names() -> None:
    source = CPP + 'TUNABLES = {"kTile": [24, 32, 40], "kBits": [4, 8]}\n'
    assert domain(source, "kTile") == (24, 32, 40)
    assert domain(source, "kBits") == (4, 8)


def test_a_name_that_python_and_cpp_share_is_one_number() -> None:
    space = find(CPP + "TILE = 32\n")
    changed = apply(space, {"TILE": 64})
    assert "kTile = 64," in changed
    assert "TILE = 64\n" in changed


def test_a_macro_from_an_f_string_is_followed_to_its_constant() -> None:
    source = 'WIDE = 8\nkernels = cpp(SOURCE, flags=[f"-DLANES={WIDE}"])\n'
    assert apply(find(source), {"WIDE": 16}).startswith("WIDE = 16\n")


def test_precision_flags_are_never_touched() -> None:
    source = 'kernels = cpp(SOURCE, flags=("-Ofast", "-ffast-math", "-fno-math-errno"))\n'
    assert current(source) == {}


def test_a_string_with_escapes_is_left_alone() -> None:
    assert current('S = "#include <cmath>\\nconstexpr int kTile = 8;"\n') == {}


def test_spans_are_right_behind_characters_of_several_bytes() -> None:
    source = 'é = "ü"; TILE = 8  # ß\nS = r"""\n#include <a>\n// é\nconstexpr int kRows = 4;\n"""\n'
    changed = apply(find(source), {"TILE": 16, "kRows": 2})
    assert changed == source.replace("TILE = 8", "TILE = 16").replace("kRows = 4", "kRows = 2")


@pytest.mark.parametrize("broken", ["def f(:", "x = 1\0", "(" * 500])
def test_what_is_no_python_has_no_numbers(broken: str) -> None:
    assert find(broken) == Space(broken, (), ())


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("kTile", 6, True),
        ("COLUMNS", 16, True),
        ("kColumns", 6, False),
        ("BLOCK_SIZE", 100, True),
        ("HEAD_DIM", 64, False),
        ("kMantissaBits", 16, False),
        ("kernel", 4, False),
        ("kLanes", 0, False),
        ("xnumel", 8192, False),
        ("r0_numel", 128, False),
    ],
)
def test_names_and_powers_of_two_tell_speed_from_maths(
    name: str, value: int, expected: bool
) -> None:
    assert is_for_speed(name, value) is expected


def test_sizes_that_kernels_of_seeds_are_given_are_left_alone() -> None:
    source = """
import triton
import triton.language as tl


@triton.jit
def multiply(a, ROWS: tl.constexpr, A_STEP: tl.constexpr, BLOCK_ROWS: tl.constexpr):
    for i in range(ROWS):
        pass


multiply[(triton.cdiv(4096, 128),)](x, ROWS=4096, A_STEP=512, BLOCK_ROWS=128, num_stages=3)
"""
    assert current(source) == {"BLOCK_ROWS": 128, "num_stages": 3}
    assert "ROWS" in current(source.replace("multiply", "reduce_rows"))


def test_names_are_split_into_words() -> None:
    assert words("kTileRows") == words("TILE_ROWS") == words("tileRows") == ("tile", "rows")


def test_structures_are_equal_when_numbers_alone_differ() -> None:
    space = find(CPP)
    assert structure(find(apply(space, {"kTile": 64, "schedule": "static"}))) == structure(space)
    assert structure(find(CPP.replace("* 16", "* 17"))) != structure(space)


def check_space(source: str, space: Space) -> None:
    """Identity, exact spans, and every single change parses and is found again."""
    assert apply(space, space.current) == source
    for place in space.places:
        if len(place.names) == 1:
            assert source[place.begin : place.end] == str(space.current[place.names[0]])
    for before, after in zip(space.places, space.places[1:], strict=False):
        assert before.end <= after.begin
    for tunable in space.tunables:
        assert tunable.current in tunable.domain
        assert tunable.kind is not Kind.CHOICE or isinstance(tunable.current, str)
        for value in tunable.domain:
            changed = apply(space, {tunable.name: value})
            ast.parse(changed)
            assert (changed == source) == (value == tunable.current)


@pytest.mark.parametrize("path", HONEST, ids=lambda path: path.stem)
def test_every_honest_candidate_can_be_tuned(path: Path) -> None:
    source = path.read_text(encoding="utf-8")
    check_space(source, find(source))


def test_most_honest_candidates_have_numbers_to_tune() -> None:
    tunable = [path for path in HONEST if find(path.read_text(encoding="utf-8")).tunables]
    assert len(tunable) > len(HONEST) / 2


@given(st.data())
def test_any_values_give_a_program_with_the_same_lines(data: st.DataObject) -> None:
    source = data.draw(st.sampled_from([CPP, TRITON]))
    space = find(source)
    values = {t.name: data.draw(st.sampled_from(t.domain), label=t.name) for t in space.tunables}
    changed = apply(space, values)
    ast.parse(changed)
    assert changed.count("\n") == source.count("\n")
    for place in space.places:
        assert place.text(values) in changed


@given(st.text(alphabet='consexpritkT=8;,{}()#"/*\n pragmodfu', max_size=120))
def test_the_scanner_of_cpp_takes_any_text(text: str) -> None:
    for number in find_cpp_numbers(text):
        assert text[number.begin : number.end] == str(number.current)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["kTile", "kRows", "BLOCK"]), st.integers(1, 10).map(lambda p: 2**p)
        ),
        max_size=5,
    ),
    st.sampled_from([" ", "\n", "  // constexpr int kTile = 4;\n", " /* é */ "]),
)
def test_written_constants_are_found_again(constants: list[tuple[str, int]], gap: str) -> None:
    text = gap.join(f"constexpr int {name} = {value};" for name, value in constants)
    found = [(number.name, number.current) for number in find_cpp_numbers(text)]
    assert found == constants


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_spans_are_right_whatever_ends_a_line(end: str) -> None:
    source = f"x = '\f'{end}TILE = 8{end}BLOCK = 16{end}"
    assert apply(find(source), {"BLOCK": 32}) == source.replace("16", "32")
