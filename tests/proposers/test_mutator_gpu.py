"""Every edit of GPU texts on an example: it says what it should and computes the same."""

from __future__ import annotations

import ast
import ctypes
import math
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.inline.simt import compiler_arguments, rewrite
from kernel_smith.inline.toolchain import find_toolchain
from kernel_smith.proposers.mutator import EDITS, Edit
from kernel_smith.proposers.mutator.gpu.edits import GPU_EDITS
from kernel_smith.proposers.mutator.gpu.polynomial import polynomial
from kernel_smith.proposers.mutator.gpu.text import gpu_texts, parse_gpu

SUITE = Path(__file__).parents[2] / "src" / "kernel_smith" / "tasks" / "maca_suite"
STREAM = {"cuda": "cudaStream_t", "maca": "mcStream_t", "hip": "hipStream_t"}
HEADERS = {"cuda": "cuda_runtime.h", "maca": "mc_runtime.h", "hip": "hip/hip_runtime.h"}

HELPERS = """
constexpr int kThreads = 128;

__device__ float widen(float value) { return value; }
__device__ void store(float* place, float value) { *place = value; }
"""
SHUFFLED_SUM = """
__device__ float block_sum(float value) {
    __shared__ float parts[kThreads];
    parts[threadIdx.x] = value;
    __syncthreads();
    float total = 0.0f;
    for (int k = 0; k < kThreads; ++k) total += parts[k];
    __syncthreads();
    return total;
}
"""
BY_ELEMENT = "    f_kernel<<<(n + kThreads - 1) / kThreads, kThreads, 0, stream>>>(x, w, y, n);"
BY_ROW = "    f_kernel<<<rows, kThreads, 0, stream>>>(x, w, y, n / rows);"
POINTERS = "(const float* __restrict__ x, const float* __restrict__ w, float* __restrict__ y, "


def program(
    body: str, launch: str, count: str, helpers: str = HELPERS, dialect: str = "cuda"
) -> str:
    """A candidate whose kernel has the given body."""
    text = f"""
#include <{HEADERS[dialect]}>

#include <cmath>
#include <cstdint>
{helpers}
__global__ void f_kernel{POINTERS}int64_t {count}) {{
{body.strip(chr(10))}
}}

extern "C" void f(const float* x, const float* w, float* y, int64_t rows, int64_t n,
                  {STREAM[dialect]} stream) {{
    {launch.strip()}
}}
"""
    call = f'SOURCE = r"""{text}"""\nkernels = {dialect}(SOURCE)\n'
    return f"from kernel_smith.inline import {dialect}\n\n{call}"


MAP = program(
    """
    const int64_t i = static_cast<int64_t>(blockIdx.x) * kThreads + threadIdx.x;
    if (i < n) store(y + i, tanhf(widen(x[i])) / (1.0f + expf(w[i])));
""",
    BY_ELEMENT,
    "n",
)
GUARDED = program(
    """
    const int i = threadIdx.x + blockIdx.x * blockDim.x;
    if (i >= n) return;
    const float value = x[i];
    y[i] = value > 0.0f ? value * w[i] : value;
""",
    BY_ELEMENT,
    "n",
)
NORM = program(
    """
    const float* in = x + blockIdx.x * columns;
    float* out = y + blockIdx.x * columns;
    float sum = 0.0f;
    for (int64_t c = threadIdx.x; c < columns; c += kThreads) sum += widen(in[c]);
    const float mean = block_sum(sum) / columns;
    float squares = 0.0f;
    for (int64_t c = threadIdx.x; c < columns; c += kThreads) {
        const float centred = widen(in[c]) - mean;
        squares += centred * centred;
    }
    const float scale = 1.0f / sqrtf(block_sum(squares) / columns + 1e-5f);
    for (int64_t c = threadIdx.x; c < columns; c += kThreads) {
        const float normal = (widen(in[c]) - mean) * scale;
        store(out + c, normal * w[c]);
    }
""",
    BY_ROW,
    "columns",
    HELPERS + SHUFFLED_SUM,
)
SCALED = program(
    """
    const float* in = x + blockIdx.x * columns;
    float* out = y + blockIdx.x * columns;
    for (int64_t c = threadIdx.x; c < columns; c += kThreads) store(out + c, in[c] * w[c]);
""",
    BY_ROW,
    "columns",
)
EXTREMES = program(
    """
    float largest = -INFINITY, smallest = INFINITY, product = 1.0f;
    for (int64_t c = threadIdx.x; c < columns; c += blockDim.x) {
        const float value = x[blockIdx.x * columns + c] + w[c];
        largest = fmaxf(largest, value);
        smallest = fminf(smallest, value);
        product *= 1.0f + 0.01f * value;
    }
    y[blockIdx.x * columns + threadIdx.x % columns] = 0.0f;
    __syncthreads();
    if (threadIdx.x == 1) y[blockIdx.x * columns] = largest - smallest + product;
""",
    BY_ROW,
    "columns",
)
TREE_BODY = """
    __shared__ float buffer[kThreads];
    const int t = threadIdx.x;
    float sum = 0.0f;
    for (int64_t c = t; c < columns; c += kThreads) sum += x[blockIdx.x * columns + c];
    buffer[t] = sum;
    __syncthreads();
    for (int s = kThreads / 2; s > 0; s /= 2) {
        if (t < s) buffer[t] += buffer[t + s];
        __syncthreads();
    }
    if (t == 0) y[blockIdx.x * columns] = buffer[0] + w[0];
"""
TREE = program(TREE_BODY, BY_ROW, "columns")
TREE_MACA = program(TREE_BODY, BY_ROW, "columns", dialect="maca")
TREE_HIP = program(TREE_BODY.replace("s /= 2", "s >>= 1"), BY_ROW, "columns", dialect="hip")
LOOSE = MAP.replace(" __restrict__", "")

# The name of an edit, a candidate to which it applies, and something that the result contains.
EXAMPLES = [
    ("grid-stride", MAP, "i += static_cast<int64_t>(gridDim.x) * kThreads) {"),
    ("grid-stride", MAP, "<<<((n + kThreads - 1) / kThreads + 3) / 4, kThreads"),
    ("grid-stride", GUARDED, "most_blocks((n + kThreads - 1) / kThreads, 16)"),
    ("pack-elements", MAP, "const auto x_pack = *reinterpret_cast<const Pack<float, i_pack>*>("),
    ("pack-elements", GUARDED, "y_pack.values[i_lane] = value > 0.0f ? value * w[i] : value;"),
    ("pack-elements", MAP, "packed_blocks<16>((n + kThreads - 1) / kThreads, y)"),
    ("pack-loop", NORM, "sum += widen(in_pack.values[c_lane]);"),
    ("pack-loop", NORM, "store(out_pack.values + c_lane, normal * w_pack.values[c_lane]);"),
    ("split-thread-sum", NORM, "sum_3 += widen(in[c_3]);"),
    ("split-thread-sum", EXTREMES, "largest = largest_1 > largest ? largest_1 : largest;"),
    ("split-thread-sum", EXTREMES, "float product_1 = 1;"),
    ("fuse-moments", NORM, "sum += sum_shifted + sum_own * sum_pivot;"),
    ("wave-reduction", TREE, "buffer_value += __shfl_xor_sync(0xffffffffu, buffer_value"),
    ("wave-reduction", TREE_MACA, "__shfl_xor_sync(0xffffffffffffffffull, buffer_value"),
    ("wave-reduction", TREE_HIP, "s >= 64; s >>= 1"),
    ("unroll-thread-loop", NORM, "#pragma unroll 4\n    for (int64_t c = threadIdx.x;"),
    ("launch-bounds", MAP, "__global__ __launch_bounds__(kThreads, 16)\nvoid f_kernel("),
    ("launch-bounds", TREE_HIP, "__global__ __launch_bounds__(kThreads)\nvoid f_kernel("),
    ("restrict-pointers", LOOSE, "(const float* __restrict__ x, const float* __restrict__ w,"),
    ("read-only-loads", GUARDED, "const float value = __ldg(x + i);"),
    ("streaming-access", GUARDED, "__stcs(y + i, value > 0.0f ? value * w[i] : value);"),
    ("streaming-access", MAP, "{ __stcs(place, value); }"),
    ("streaming-access", NORM, "normal * __ldcs(w + c)"),
    ("fast-intrinsics", MAP, "(1.0f + __expf(w[i]))"),
    ("fast-intrinsics", MAP, "(1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * (widen(x[i])))))"),
    ("fast-division", MAP, "__fdividef(tanhf(widen(x[i])), 1.0f + expf(w[i]))"),
    ("reciprocal-root", NORM, "= rsqrtf(block_sum(squares) / columns + 1e-5f);"),
]


def edit_named(name: str) -> Edit:
    return next(edit for edit in EDITS if edit.name == name)


def text_of(source: str) -> str:
    (text,) = gpu_texts(source)
    return text.text


def versions(name: str, source: str) -> list[str]:
    return [text_of(edit_named(name).apply(source, s)) for s in edit_named(name).sites(source)]


def sites(name: str, source: str) -> list[str]:
    return [str(site) for site in edit_named(name).sites(source)]


@pytest.mark.parametrize(("name", "source", "expected"), EXAMPLES)
def test_an_edit_writes_what_its_name_says(name: str, source: str, expected: str) -> None:
    written = versions(name, source)
    assert any(expected in text for text in written), "\n".join(written)


def test_every_gpu_edit_has_an_example() -> None:
    assert {edit.name for edit in GPU_EDITS} == {name for name, _, _ in EXAMPLES}
    assert set(GPU_EDITS) <= set(EDITS)


def test_streaming_hints_are_for_cuda_alone() -> None:
    assert edit_named("streaming-access").backends == ("cuda",)
    assert edit_named("pack-loop").backends == ("cuda", "maca", "hip")


def programs(dialect: str) -> dict[str, str]:
    if dialect != "cuda":
        return {"tree": {"maca": TREE_MACA, "hip": TREE_HIP}[dialect]}
    named = {"map": MAP, "guarded": GUARDED, "norm": NORM, "scaled": SCALED}
    return {**named, "extremes": EXTREMES, "tree": TREE}


def changes(dialect: str) -> Iterator[tuple[str, str, str]]:
    """A program's name, what was done to it, and the result: each edit alone, and some in a row."""
    own = [edit for edit in GPU_EDITS if dialect in edit.backends]
    for name, source in programs(dialect).items():
        for edit in own:
            found = edit.sites(source)
            for site in {found[0], found[-1]} if found else ():
                yield name, f"{edit.name}, {site}", edit.apply(source, site)
        rng = random.Random(name)
        done, changed = [], source
        for _ in range(5):
            left = [(e, s) for e in own for s in e.sites(changed)]
            if not left:
                break
            edit, site = rng.choice(left)
            changed = edit.apply(changed, site)
            done.append(f"{edit.name}, {site}")
        yield name, "; ".join(done), changed


def build(dialect: str, candidates: dict[str, str], folder: Path) -> ctypes.CDLL:
    """All candidates in one library, on emulated threads; each `f` under a name of its own."""
    parts = [f"#include <{HEADERS[dialect]}>\n#include <cmath>\n#include <cstdint>\n"]
    for name, source in candidates.items():
        text = rewrite(text_of(source)).replace('"C" void f(', f'"C" void {name}(')
        plain = re.sub(r"#include <[^>]*>", "", text)
        parts.append(f"namespace of_{name} {{\n{plain}\n}}\n")
    (folder / "all.cpp").write_text("".join(parts))
    flags = [*compiler_arguments(dialect), "-std=c++17", "-O0", "-w", "-shared", "-fPIC"]
    command = [str(find_toolchain("cpp").compiler), *flags, "all.cpp", "-o", "all.so"]
    subprocess.run(command, cwd=folder, check=True)
    return ctypes.CDLL(str(folder / "all.so"))


def results(function: ctypes._NamedFuncPointer, rows: int, columns: int, shift: int) -> list[float]:
    """The output for random inputs that begin `shift` elements behind an aligned address."""
    rng = random.Random(columns)
    count = rows * columns
    buffers = [(ctypes.c_float * (count + 16))() for _ in "xwy"]
    addresses = []
    for buffer in buffers:
        first = (-ctypes.addressof(buffer) % 16) // 4 + shift
        addresses.append(ctypes.c_void_p(ctypes.addressof(buffer) + 4 * first))
        buffer[first : first + count] = [3 + rng.gauss(0, 1) for _ in range(count)]
    function(*addresses, ctypes.c_int64(rows), ctypes.c_int64(count), None)
    assert not any(buffers[2][:first]) and not any(buffers[2][first + count :])
    return list(buffers[2][first : first + count])


@pytest.mark.slow
@pytest.mark.parametrize("dialect", ["cuda", "maca", "hip"])
def test_edited_kernels_compute_the_same(dialect: str, tmp_path: Path) -> None:
    made = list(changes(dialect))
    candidates = {f"after_{k}": candidate for k, (_, _, candidate) in enumerate(made)}
    library = build(dialect, programs(dialect) | candidates, tmp_path)
    for rows, columns, shift in ((2, 516, 0), (3, 131, 0), (1, 264, 1)):
        before = {
            name: results(getattr(library, name), rows, columns, shift)
            for name in programs(dialect)
        }
        for k, (name, what, _) in enumerate(made):
            after = results(getattr(library, f"after_{k}"), rows, columns, shift)
            # Element by element, because `pytest.approx` takes longer than all the rest.
            wrong = [
                pair
                for pair in zip(after, before[name], strict=True)
                if not math.isclose(*pair, rel_tol=1e-4, abs_tol=1e-4)
            ]
            assert wrong == [], (name, what, rows, columns)


# Changes of the examples that take away what an edit relies on.
REFUSALS = {
    "a barrier in the loop": ("pack-loop", SCALED, ("in[c] *", "__syncthreads_or(1) *")),
    "a result that is read": ("pack-loop", SCALED, ("in[c] * w[c]", "in[c] * out[c]")),
    "pointers that may overlap": ("pack-loop", NORM, (" __restrict__", "")),
    "another stride": ("pack-loop", NORM, ("c += kThreads", "c += 2 * kThreads")),
    "another start": ("pack-loop", NORM, ("c = threadIdx.x", "c = 1 + threadIdx.x")),
    "a second result": ("pack-loop", SCALED, ("    for (", "    out[0] = 1.0f;\n    for (")),
    "shared memory": (
        "pack-loop",
        SCALED,
        ("const float* in = x", "__shared__ float in[9]; const float* o = x"),
    ),
    "an early end": ("pack-loop", NORM, ("float sum = 0.0f;", "if (threadIdx.x > 9) return;")),
    "a thread's own value": ("pack-elements", MAP, ("tanhf(widen(x[i]))", "tanhf(threadIdx.x)")),
    "a neighbour": ("pack-elements", MAP, ("store(y + i,", "store(y + n - 1 - i,")),
    "a grid that covers less": ("grid-stride", MAP, ("(n + kThreads - 1)", "(n - 1)")),
    "a grid of another width": ("grid-stride", MAP, (") / kThreads, kThreads", ") / 64, kThreads")),
    "blocks of several shapes": (
        "grid-stride",
        MAP,
        ("/ kThreads, kThreads", "/ kThreads, dim3(8, 16)"),
    ),
    "a block's own value": ("grid-stride", MAP, ("tanhf(widen(x[i]))", "tanhf(blockIdx.x)")),
    "a helper that asks for the thread": (
        "grid-stride",
        MAP.replace("constexpr", "__device__ int own() { return threadIdx.x; }\nconstexpr", 1),
        ("tanhf(widen(x[i]))", "tanhf(own())"),
    ),
    "work of all threads before it": (
        "grid-stride",
        MAP,
        ("    const int64_t i", "    y[0] = 2.0f;\n    const int64_t i"),
    ),
    "another number of elements": (
        "grid-stride",
        GUARDED,
        ("    const int i", "    n /= 2;\n    const int i"),
    ),
    "work after the guard": ("grid-stride", MAP, ("w[i])));", "w[i])));\n    y[0] = 1.0f;")),
    "a guard with two parts": ("grid-stride", MAP, ("if (i < n)", "if (i < n && n > 4)")),
    "an atomic": ("split-thread-sum", TREE, ("sum += x[", "sum += atomicAdd(y, 1.0f) + x[")),
    "a recurrence": ("split-thread-sum", TREE, ("sum += x[", "sum = 0.5f * sum + x[")),
    "a sum that is looked at": ("split-thread-sum", TREE, ("sum += x[", "sum += sum * x[")),
    "a mean of something else": (
        "fuse-moments",
        NORM,
        ("sum += widen(in[c])", "sum += widen(w[c])"),
    ),
    "other elements": (
        "fuse-moments",
        NORM,
        ("c < columns; c += kThreads) sum", "c < 9; c += kThreads) sum"),
    ),
    "a whole buffer that is used": ("wave-reduction", TREE, ("buffer[0] +", "buffer[1] +")),
    "an odd number of threads": ("wave-reduction", TREE, ("kThreads = 128", "kThreads = 96")),
    "a reduction that some threads run": (
        "wave-reduction",
        TREE,
        ("for (int s", "if (t < 64) for (int s"),
    ),
    "bounds that are known": (
        "launch-bounds",
        MAP,
        ("__global__ ", "__global__ __launch_bounds__(256) "),
    ),
    "one pointer given twice": ("restrict-pointers", LOOSE, (">>>(x, w, y,", ">>>(y, w, y,")),
    "integers": ("fast-division", MAP, ("tanhf(widen(x[i])) / (1.0f + expf(w[i]))", "n / i")),
    "double precision": ("fast-division", MAP, ("(1.0f + expf", "(1.0 + expf")),
    "a launch in a macro": (
        "grid-stride",
        MAP,
        ("constexpr int", "#define GO f_kernel<<<1, 2>>>\nconstexpr int"),
    ),
    "a function of the same name": (
        "fast-intrinsics",
        GUARDED.replace("value * w[i]", "expf(w[i])"),
        ("constexpr int", "__device__ float expf(float v) { return v; }\nconstexpr int"),
    ),
}


@pytest.mark.parametrize("what", REFUSALS)
def test_what_is_not_understood_is_left_alone(what: str) -> None:
    name, source, (old, new) = REFUSALS[what]
    assert sites(name, source)
    assert old in source
    assert sites(name, source.replace(old, new)) == []


def test_a_sum_that_one_thread_keeps_is_not_shared_out_anew() -> None:
    assert sites("split-thread-sum", EXTREMES)
    assert sites("pack-loop", EXTREMES) == []
    kept = NORM.replace("block_sum(squares)", "block_sum(squares) + sum")
    assert {site.partition(" (")[0] for site in sites("pack-loop", kept)} == {
        "loop over c in f_kernel no. 2"
    }


def test_local_memory_is_never_stored_with_a_streaming_hint() -> None:
    packed = versions_of_candidate("pack-elements", MAP)[0]
    assert "store" in sites("streaming-access", MAP)
    assert "store" not in sites("streaming-access", packed)


def versions_of_candidate(name: str, source: str) -> list[str]:
    return [edit_named(name).apply(source, s) for s in edit_named(name).sites(source)]


@pytest.mark.parametrize("name", ["grid-stride", "pack-elements", "fuse-moments", "wave-reduction"])
def test_an_edit_is_made_once(name: str) -> None:
    source = {"fuse-moments": NORM, "wave-reduction": TREE}.get(name, MAP)
    assert sites(name, versions_of_candidate(name, source)[0]) == []


def test_loops_of_one_kernel_are_packed_one_after_the_other() -> None:
    source, counts = NORM, []
    while found := edit_named("pack-loop").sites(source):
        counts.append(len(found))
        source = edit_named("pack-loop").apply(source, found[0])
    assert counts == [6, 4, 2]
    assert source.count("struct alignas") == 1


def test_launches_and_qualifiers_keep_their_positions() -> None:
    text = parse_gpu("__global__ void f();\n// <<< in words\nvoid g() { f<<<1, 2>>>(); }\n", "cuda")
    assert not text.root.has_error
    assert text.root.end_byte == len(text.data)
    assert [text.of(n) for n in text.functions()] == ["void g() { f<<<1, 2>>>(); }"]


@pytest.mark.parametrize(
    "written",
    [
        "blockIdx.x * 128 + threadIdx.x",
        "threadIdx.x + static_cast<int64_t>(128) * blockIdx.x",
        "(int64_t)blockIdx.x * (100 + 28) + threadIdx.x",
    ],
)
def test_indices_are_known_however_they_are_written(written: str) -> None:
    expected = {("blockIdx_x",): 128, ("threadIdx_x",): 1}
    assert polynomial(written, lambda _: None) == expected


def test_what_is_no_polynomial_has_none() -> None:
    for written in ("n / 4", "f(n)", "a ? b : c", "n +", "1.5"):
        assert polynomial(written, lambda _: None) is None


STARTS = sorted([*SUITE.glob("*/start_cuda.py"), *SUITE.glob("*/start_maca.py")])


@settings(max_examples=6, deadline=None)
@given(st.sampled_from(STARTS), st.randoms(use_true_random=False))
def test_edits_of_starting_kernels_can_be_read(path: Path, rng: random.Random) -> None:
    source = path.read_text(encoding="utf-8")
    for _ in range(3):
        own = [edit for edit in GPU_EDITS if path.stem.removeprefix("start_") in edit.backends]
        found = [(edit, site) for edit in own for site in edit.sites(source)]
        if not found:
            break
        edit, site = rng.choice(found)
        changed = edit.apply(source, site)
        ast.parse(changed)
        assert changed != source
        assert len(gpu_texts(changed)) == 1, (edit.name, str(site))
        source = changed


@settings(max_examples=12, deadline=None)
@given(st.sampled_from(STARTS), st.randoms(use_true_random=False))
def test_edits_bear_kernels_with_lines_missing(path: Path, rng: random.Random) -> None:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = "".join(line for line in lines if rng.random() > 0.03)
    for edit in GPU_EDITS:
        for site in edit.sites(kept)[:2]:
            assert edit.apply(kept, site) != kept
