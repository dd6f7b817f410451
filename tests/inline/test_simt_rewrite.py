"""CUDA text becomes C++ for the emulation: launches, shared memory, and nothing else."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.errors import BadInput
from kernel_smith.inline.simt import compiler_arguments, rewrite

WHOLE = [
    "k<<<1, 2>>>(x);",
    "k<T, (A > 3)><<<dim3(a >> 1,\n b), 64,\n 0, s>>>(x,\n y);",
    "__shared__ float s[32];",
    "extern __shared__ float s[];",
    "extern __shared__\n __align__(16) float4 t[][8];",
    'asm volatile("mov\\n" : "=r"(x)\n : "r"(y));',
    "// k<<<1, 2>>>(x)\n",
    "/* extern __shared__ float s[];\n */",
    '"k<<<1, 2>>>(x)"',
    'R"(asm("x") k<<<1, 2>>>(x)\n)"',
    "'\"'",
    "#define LAUNCH(T) \\\n  k<T><<<g, b>>> \\\n (x)\n",
    "a << b >> c;",
    "[=] __device__ (int i) { return i; };",
]
FRAGMENTS = [
    "<<<",
    ">>>(",
    "asm",
    "asm(",
    "extern __shared__",
    "(",
    ")",
    "<",
    ">",
    "{",
    "}",
    ";",
    "\n",
    "\r\n",
    "\\\n",
]

call = "ks_simt::launcher([&](auto&... ks_arguments) {{ {}(ks_arguments...); }}).shaped({})({})"


def squeezed(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize(
    ("launch", "kernel", "shape", "arguments"),
    [
        ("k<<<g, b>>>(x)", "k", "g, b", "x"),
        ("k<<<g, b, 0, s>>>()", "k", "g, b, 0, s", ""),
        ("k<float, 4><<<g, b>>>(x)", "k<float, 4>", "g, b", "x"),
        ("k<vec<4>><<<g, b>>>(x)", "k<vec<4>>", "g, b", "x"),
        ("k<(A > B), N><<<g, b>>>(x)", "k<(A > B), N>", "g, b", "x"),
        ("a::b<int>::k<<<g, b>>>(x)", "a::b<int>::k", "g, b", "x"),
        ("a::template k<3><<<g, b>>>(x)", "a::template k<3>", "g, b", "x"),
        ("::k<<<g, b>>>(x)", "::k", "g, b", "x"),
        ("(choice)<<<g, b>>>(x)", "(choice)", "g, b", "x"),
        ("table[i]<<<g, b>>>(x)", "table[i]", "g, b", "x"),
        ("k<<<dim3(n >> 3, m), b>>>(x)", "k", "dim3(n >> 3, m), b", "x"),
        ("k<<<(n + 255) / 256, 256>>>(f(x), y)", "k", "(n + 255) / 256, 256", "f(x), y"),
        ("k<<<g, b>>>(x, NULL)", "k", "g, b", "x, nullptr"),
    ],
)
def test_a_launch_becomes_a_call(launch: str, kernel: str, shape: str, arguments: str) -> None:
    assert rewrite(launch) == call.format(kernel, shape, arguments)


def test_what_stands_before_a_launch_is_not_part_of_its_name() -> None:
    launched = call.format("k", "g, b", "x")
    for before in ("return ", "if (n > 3) ", "else ", "x = a < b; ", "{ ", "case 3: "):
        assert rewrite(before + "k<<<g, b>>>(x);") == before + launched + ";"


def test_several_launches_on_one_line_are_all_rewritten() -> None:
    rewritten = rewrite("a<<<1, 2>>>(x); b<int><<<3, 4>>>(y);")
    assert (
        rewritten == call.format("a", "1, 2", "x") + "; " + call.format("b<int>", "3, 4", "y") + ";"
    )


def test_a_launch_in_a_macro_is_rewritten() -> None:
    source = "#define RUN(T) k<T><<<g, b>>>(x)\n"
    assert rewrite(source) == "#define RUN(T) " + call.format("k<T>", "g, b", "x") + "\n"


@pytest.mark.parametrize(
    "text",
    [
        "// k<<<1, 2>>>(x)\n",
        "/* k<<<1, 2>>>(x) */",
        'puts("k<<<1, 2>>>(x)");',
        'auto s = R"(k<<<1, 2>>>(x); extern __shared__ float s[];)";',
        "int y = 1 << 3 >> 2; bool z = a < b, w = b > c;",
        "#include <cuda_runtime.h>\n",
        "__shared__ float tile[16][17];",
        "int asm_count = 3;",
        "__attribute__((__noinline__)) int f();",
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert rewrite(text) == text


def test_dynamic_shared_memory_becomes_a_pointer() -> None:
    flat = rewrite("extern __shared__ float s[];")
    assert squeezed(flat) == "float * const s = ks_simt::dynamic_shared;"
    rows = rewrite("extern __shared__ alignas(16) float4 s[][8];")
    assert squeezed(rows) == "float4 (* const s)[8] = ks_simt::dynamic_shared;"


def test_qualifiers_of_static_shared_memory_are_made_to_fit() -> None:
    assert squeezed(rewrite("static __shared__ int s;")) == "__shared__ int s;"
    assert rewrite("__shared__ alignas(16) int s[4];") == "__shared__ __align__(16) int s[4];"


def test_qualifiers_of_a_lambda_go() -> None:
    rewritten = rewrite("auto f = [=] __host__ __device__ (int i) { return i; };")
    assert squeezed(rewritten) == "auto f = [=] (int i) { return i; };"
    assert rewrite("a[3]; __device__ int f();") == "a[3]; __device__ int f();"


def test_assembly_and_matrix_builtins_become_refusals() -> None:
    assert "not emulated on the CPU: inline assembly" in rewrite('asm volatile("x" : : );')
    assert "__builtin_mxc_mma_16x16x16f16" in rewrite("d = __builtin_mxc_mma_16x16x16f16(a, b, c);")


@given(st.lists(st.sampled_from(WHOLE + FRAGMENTS), max_size=12).map(" ".join))
def test_every_line_stays_where_it_was(source: str) -> None:
    rewritten = rewrite(source)
    assert [line[-1:] == "\\" for line in rewritten.split("\n")] == [
        line[-1:] == "\\" for line in source.split("\n")
    ]
    assert rewritten.count("\n") == source.count("\n")


@given(st.lists(st.sampled_from(WHOLE), max_size=12).map(" ".join))
def test_what_was_rewritten_is_left_alone(source: str) -> None:
    assert rewrite(rewrite(source)) == rewrite(source)


@given(st.text(alphabet="k<>()[]{};,\"'\\/*\n aR_"))
def test_no_text_is_too_strange(source: str) -> None:
    assert rewrite(source).count("\n") == source.count("\n")


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(BadInput, match="metal"):
        compiler_arguments("metal")
