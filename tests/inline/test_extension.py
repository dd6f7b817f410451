"""PyTorch's `load_inline`: how a call is read and put together, and what is compiled from it."""

import ast
import ctypes
import os
from pathlib import Path

import pytest

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.evaluation.backends import find_backend
from kernel_smith.inline.build import BuildResult, build
from kernel_smith.inline.cache import ObjectCache
from kernel_smith.inline.dialects import recipe
from kernel_smith.inline.elf import exported_functions, imported_symbols, neutralise
from kernel_smith.inline.extension import Extension, UnsupportedArgument, compose
from kernel_smith.inline.extension_calls import find_extensions
from kernel_smith.inline.extension_recipe import MODULE
from kernel_smith.inline.literals import Literal
from kernel_smith.inline.toolchain import find_toolchain

IMPORT = "from torch.utils.cpp_extension import load_inline\n"
# KernelBench's own example of an answer, but for what the kernel computes.
KERNELBENCH = '''
import torch
from torch.utils.cpp_extension import load_inline

source = """
__global__ void twice_kernel(const float* x, float* y, int size) {
    y[0] = 2 * x[0];
}
torch::Tensor twice_cuda(torch::Tensor x) { return x; }
"""

cpp_source = "torch::Tensor twice_cuda(torch::Tensor x);"

twice = load_inline(
    name="twice",
    cpp_sources=cpp_source,
    cuda_sources=source,
    functions=["twice_cuda"],
    verbose=True,
    extra_cflags=[""],
    extra_ldflags=[""],
)
'''
# Without bindings: the headers that they need take most of a minute to compile.
CUDA = """
__global__ void twice_kernel(const float* x, float* y, int n) {
    if (threadIdx.x < n) y[threadIdx.x] = 2 * x[threadIdx.x];
}
int twice(const float* x, float* y, int n) {
    twice_kernel<<<1, 64>>>(x, y, n);
    return 7;
}
extern "C" int PyInit_kernel_smith_extension() { return 8; }
"""


def called(**given: object) -> Extension:
    return compose({"no_implicit_headers": True, "with_pytorch_error_handling": False, **given})


def found(text: str) -> list[Literal]:
    return find_extensions(ast.parse(text))


def built(made: Extension, folder: Path, arch: str | None = None) -> BuildResult:
    cache = ObjectCache(folder)
    return build(made.source, made.flags, made.dialect, cache, timeout=240, arch=arch)


def test_a_call_becomes_one_text_with_header_and_bindings() -> None:
    made = compose({"name": "m", "cpp_sources": "int f();", "functions": ["f"]})
    assert made.dialect == "cpp-extension"
    lines = made.source.splitlines()
    assert lines[0] == "#include <torch/extension.h>"
    assert lines[1:3] == ['#line 1 "cpp_sources_1"', "int f();"]
    assert lines[-2] == 'm.def("f", torch::wrap_pybind_function(f), "f");'


def test_cuda_texts_follow_the_others_in_a_dialect_of_their_own() -> None:
    made = compose({"cpp_sources": ["int f();"], "cuda_sources": ["A", "B"], "functions": "f"})
    assert made.dialect == "cuda-extension"
    places = [made.source.index(text) for text in ("int f();", "\nA\n", "\nB\n", "PYBIND11_MODULE")]
    assert places == sorted(places)


def test_name_and_place_make_no_other_object() -> None:
    one = compose({"name": "one", "cpp_sources": "int f();", "build_directory": "/tmp/one"})
    assert one == compose({"name": "two", "cpp_sources": ["int f();", ""], "verbose": True})


def test_of_a_cuda_calls_flags_the_hosts_count_only_where_they_change_the_meaning() -> None:
    flags = {"extra_cflags": ["-O2", "-DN=4", ""], "extra_cuda_cflags": ["-O3", "--use_fast_math"]}
    made = compose({"cpp_sources": "", "cuda_sources": "K", **flags})
    assert made.flags == ("-DN=4", "-O3", "--use_fast_math")
    assert compose({"cpp_sources": "C", **flags}).flags == ("-O2", "-DN=4")


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("extra_ldflags", ["-lcublas"]),
        ("extra_include_paths", ["/opt/cutlass"]),
        ("sycl_sources", "S"),
        ("with_sycl", True),
        ("is_python_module", False),
    ],
)
def test_an_argument_that_cannot_be_honoured_is_named(argument: str, value: object) -> None:
    with pytest.raises(UnsupportedArgument, match=argument):
        compose({"cpp_sources": "int f();", argument: value})
    assert compose({"cpp_sources": "", "extra_ldflags": [""], "with_sycl": False})


def test_kernelbenchs_example_is_read_from_the_file() -> None:
    [literal] = found(KERNELBENCH)
    namespace: dict[str, str] = {}
    exec(KERNELBENCH.partition("twice = ")[0].replace(IMPORT, ""), namespace)
    given = {"cpp_sources": namespace["cpp_source"], "cuda_sources": namespace["source"]}
    made = compose({**given, "functions": ["twice_cuda"], "extra_cflags": [""]})
    assert (literal.dialect, literal.source, literal.flags) == (made.dialect, made.source, ())
    assert [(piece.name, piece.first_line) for piece in literal.pieces] == [
        ("cpp_sources_1", 12),
        ("cuda_sources_1", 5),
    ]
    assert find_backend("cuda").sources(ast.parse(KERNELBENCH)) == [literal]
    assert find_backend("hip").sources(ast.parse(KERNELBENCH)) == []


@pytest.mark.parametrize(
    "call",
    [
        "load_inline('m', ['A', 'B'], functions={'f': 'doubles'}, with_cuda=False)",
        "load_inline(name='m', cpp_sources=('A', 'B'), functions={'f': 'do' 'ubles'})",
        "TEXTS = ['A', 'B']\nload_inline('m', cpp_sources=TEXTS, functions={'f': 'doubles'})",
        "import torch\ntorch.utils.cpp_extension.load_inline('m', ['A', 'B'], None, "
        "functions={'f': 'doubles'})",
    ],
)
def test_arguments_are_read_however_they_are_written(call: str) -> None:
    [literal] = found(IMPORT + call)
    made = compose({"cpp_sources": ["A", "B"], "functions": {"f": "doubles"}})
    assert (literal.dialect, literal.source) == (made.dialect, made.source)


@pytest.mark.parametrize(
    "call",
    [
        "load_inline(name='m', cpp_sources=make(), functions=['f'])",
        "load_inline(name='m', cpp_sources='A', functions=names)",
        "load_inline(name='m', cpp_sources='A', functions={**names})",
        "load_inline(name='m', cpp_sources='A', with_cuda=maybe)",
        "load_inline(name='m', cpp_sources='A', extra_ldflags=['-lcublas'])",
        "load_inline('m', 'A', None, None, ['f'])",
        "load_inline(**arguments)",
        "load(name='m', sources=['a.cpp'])",
    ],
)
def test_what_only_the_process_knows_is_left_to_it(call: str) -> None:
    assert found(IMPORT + call) == []


def test_extensions_have_no_other_route_than_their_own() -> None:
    with pytest.raises(BadInput, match="need the hardware"):
        recipe("cuda-extension", "cpu")
    with pytest.raises(BadInput, match="unknown dialect"):
        recipe("hip-extension")


def test_a_message_names_the_text_and_its_line(tmp_path: Path) -> None:
    made = called(cpp_sources=["int one() { return 1; }", "\nint two() { return nope; }"])
    result = built(made, tmp_path)
    assert result.path is None
    assert "cpp_sources_2:2:" in result.log and "nope" in result.log


def test_a_flag_that_reaches_beyond_the_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="-include"):
        built(called(cpp_sources="int x;", extra_cflags=["-include/etc/passwd"]), tmp_path)


def test_what_starts_processes_loads_code_or_runs_python_is_found(tmp_path: Path) -> None:
    source = """
    #include <Python.h>
    #include <cstdlib>
    extern "C" int f() { return system("true") + PyRun_SimpleString("import os"); }
    """
    path = built(called(cpp_sources=source), tmp_path).path
    assert path is not None
    assert find_backend("cpp").forbidden_symbols(path) == ["PyRun_SimpleStringFlags", "system"]


@pytest.mark.slow
def test_a_cuda_extension_loads_without_its_launches(tmp_path: Path) -> None:
    try:
        toolkit = find_toolchain("cuda").compiler.resolve().parents[1]
    except MissingPrerequisite as missing:
        pytest.skip(missing.what)
    declared = "int twice(const float* x, float* y, int n);"
    made = called(cpp_sources=declared, cuda_sources=CUDA)
    result = built(made, tmp_path, arch="sm_90")
    assert result.path is not None, result.log
    assert [kernel.name.partition("(")[0] for kernel in result.resources] == ["twice_kernel"]
    assert find_backend("cuda").forbidden_symbols(result.path) == []

    disarmed = tmp_path / "disarmed.so"
    neutralise(result.path, disarmed)
    assert launches(result.path) and not launches(disarmed)
    assert exported_functions(disarmed) == exported_functions(result.path)
    runtimes = sorted(toolkit.glob("**/libcudart.so.*"))
    if not runtimes:
        return  # then nothing that is linked with it can be loaded
    ctypes.CDLL(str(runtimes[0]), ctypes.RTLD_GLOBAL)
    library = ctypes.CDLL(str(disarmed), mode=os.RTLD_NOW)  # looks the new names up, too
    assert library["_Z5twicePKfPfi"](None, None, 1) == 7  # host code runs
    assert library[f"PyInit_{MODULE}"]() == 8


def launches(path: Path) -> set[str]:
    return {name for name in imported_symbols(path) if "Launch" in name}
