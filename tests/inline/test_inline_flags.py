"""Which flags a candidate of a GPU dialect may use, and which of them another compiler gets."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.errors import BadInput
from kernel_smith.inline.flags import check_flags, flags_for

CUDA_ALLOWED = [
    *("-O2", "-DN=4", "-DNAME", "-DT=float", "-DX=1.5e-3f", "-std=c++20", "--std=c++17"),
    *("--use_fast_math", "-use_fast_math", "-maxrregcount=64", "--maxrregcount=64", "-fmad=false"),
    *("--fmad=true", "-ftz=true", "-prec-div=false", "--prec-sqrt=false", "-lineinfo", "-w"),
    *("--extra-device-vectorization", "-Xptxas=-O3", "-Xptxas=-dlcm=ca", "-Xptxas=-v,-O1"),
    *("--expt-relaxed-constexpr", "--extended-lambda", "-diag-suppress=177,20012", "--restrict"),
]
CLANG_ALLOWED = [
    *("-O2", "-Ofast", "-DN=4", "-std=c++20", "-ffast-math", "-funroll-loops", "-Wall"),
    *("-munsafe-fp-atomics", "-mno-fma", "-ffp-contract=fast", "--gpu-max-threads-per-block=512"),
]
REFUSED = [
    *("", "-", "kernel.cpp", "@file", "-I.", "-I", "-include", "-include=x", "-lm", "-l", "-L."),
    *("-Xcompiler", "-Xcompiler=-fplugin=x.so", "-Xlinker", "-Xlinker=-T,x", "-Xptxas", "-o", "-c"),
    *("-Xptxas=-o,x", "-Xptxas=--options-file=x", "-Xptxas=-O3,-o", "-ccbin", "-ccbin=evil"),
    *("--compiler-bindir=x", "--compiler-options=x", "--linker-options=x", "-arch=sm_90"),
    *("--gpu-architecture=sm_90", "--offload-arch=gfx90a", "--options-file=x", "-optf=x"),
    *("--keep", "--keep-dir=x", "-MD", "-MF", "--dryrun", "-dc", "-rdc=true", "--shared"),
    *("--pre-include=x", "--library=x", "-fplugin=x.so", "-Wl,-z,now", "-mllvm", "-ptx", "-x"),
    *("-mlink-builtin-bitcode", "--default-stream=per-thread", "-cudart=shared", "-Xarch_device"),
    *("-DX=$(id)", "-DX=`id`", "-DX=a;b", "-DX=a b", '-DX="a"', "-DX=/etc/passwd", "-DX=a|b"),
    *("-DX\n", "-O2 -I.", "-std=c++17,x", "--maca-path=x", "--rocm-path=x", "-Wa,-a=x"),
]


@pytest.mark.parametrize("flag", CUDA_ALLOWED)
def test_flags_of_nvcc_that_shape_code_are_allowed(flag: str) -> None:
    assert check_flags([flag], "cuda") == (flag,)


@pytest.mark.parametrize("flag", CLANG_ALLOWED)
def test_flags_of_clang_that_shape_code_are_allowed(flag: str) -> None:
    assert check_flags([flag], "maca") == check_flags([flag], "hip") == (flag,)


@pytest.mark.parametrize("flag", REFUSED)
@pytest.mark.parametrize("dialect", ["cuda", "maca", "hip"])
def test_flags_that_reach_beyond_the_kernel_are_refused(dialect: str, flag: str) -> None:
    with pytest.raises(BadInput, match="flag not allowed") as caught:
        check_flags(["-O2", flag], dialect)
    assert "-D" in caught.value.hint


@given(st.text(st.characters(codec="ascii"), max_size=12), st.sampled_from(["cuda", "maca", "hip"]))
def test_no_definition_can_end_a_word_of_a_shell(value: str, dialect: str) -> None:
    try:
        check_flags([f"-DX={value}"], dialect)
    except BadInput:
        return
    assert all(character.isalnum() or character in "_.:+-" for character in value)


def test_another_compiler_gets_only_what_the_source_means() -> None:
    assert flags_for("native", CUDA_ALLOWED) == tuple(CUDA_ALLOWED)
    kept = ("-DN=4", "-DNAME", "-DT=float", "-DX=1.5e-3f", "-std=c++20", "-std=c++17")
    assert flags_for("cpu", CUDA_ALLOWED) == kept
    assert flags_for("nvidia", CLANG_ALLOWED) == ("-DN=4", "-std=c++20")
