"""Features put candidates in the bins that their descriptions promise."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.errors import BadInput
from kernel_smith.programs import techniques
from kernel_smith.records import Candidate, DeviceKernel, Elite, KernelShare, Roofline
from kernel_smith.search.islands import FEATURES
from kernel_smith.search.islands.features import features_named

MakeElite = Callable[..., Elite]

_TESTS = Path(__file__).parents[1]


def honest(name: str) -> Candidate:
    cpp, triton = _TESTS / "honest" / "candidates", _TESTS / "gpu" / "honest"
    path = next(
        folder / f"{name}.py" for folder in (cpp, triton) if (folder / f"{name}.py").exists()
    )
    backend = "cpp" if path.parent == cpp else "triton"
    return Candidate(backend=backend, source=path.read_text())


def roofline(bound: str, seconds: float) -> Roofline:
    return Roofline(
        workload="wide",
        bytes=1,
        flops=1,
        precision="strict",
        launches=1,
        seconds=seconds,
        bytes_per_second=1,
        flops_per_second=1,
        bound=bound,
        share=0.5,
        floor_seconds=0.1,
    )


def share(origin: str, part: float) -> KernelShare:
    return KernelShare(module=origin, origin=origin, share=part, samples=10)


def device_kernel(origin: str, launches: float) -> DeviceKernel:
    return DeviceKernel(name="k", origin=origin, launches=launches, share=0.1, seconds=1e-6)


@settings(deadline=None)
@given(number=st.integers(0, 50), low=st.floats(0.01, 1e3), lines=st.integers(1, 400))
def test_every_bin_is_a_listed_one(
    make_elite: MakeElite, number: int, low: float, lines: int
) -> None:
    elite = make_elite(number, low, lines=lines)
    for feature in FEATURES.values():
        assert feature.of(elite) in feature.bins


def test_bins_differ_and_features_describe_themselves() -> None:
    for name, feature in FEATURES.items():
        assert feature.name == name
        assert feature.description
        assert len(set(feature.bins)) == len(feature.bins)


def test_an_unknown_feature_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BadInput, match="'speed'") as caught:
        features_named(["complexity", "speed"])
    for name in FEATURES:
        assert name in caught.value.hint


@pytest.mark.parametrize("names", [[], ["score", "score"]])
def test_features_must_be_some_and_differ(names: list[str]) -> None:
    with pytest.raises(BadInput):
        features_named(names)


def test_complexity_ignores_comments_and_counts_kernel_text(make_elite: MakeElite) -> None:
    complexity = FEATURES["complexity"].of
    short = "x = 1\n"
    assert complexity(make_elite(source=short)) == "<=64"
    assert complexity(make_elite(source=short + "# much to say\n" * 500)) == "<=64"
    assert complexity(make_elite(source='S = """\n' + "a = b + c;\n" * 150 + '"""\n')) == "<=1024"
    assert complexity(make_elite(source="x = 1\n" * 3000)) == ">4096"


@pytest.mark.parametrize(
    ("low", "expected"),
    [(0.3, "<0.5"), (0.5, ">=0.5"), (0.99, ">=0.5"), (1.0, ">=1"), (1.3, ">=1.25"), (99, ">=10")],
)
def test_score_is_binned_by_the_certain_speedup(
    make_elite: MakeElite, low: float, expected: str
) -> None:
    assert FEATURES["score"].of(make_elite(low=low, high=low * 3)) == expected


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("matmul__packed_tiles", "tiled"),
        ("cross_entropy__online_normaliser", "accumulators"),
        ("bias_hardswish_residual__flat_blocks", "unrolled"),
        ("gelu_tanh__vector_extension", "vectorised"),
        ("row_logsumexp__source_by_machine", "vectorised"),
        ("topk_routing__insertion", "parallel"),
        ("layer_norm_vit__standing_programs", "persistent"),
        ("weight_gradient_matmul__split_with_atomics", "split"),
        ("dense_matmul__tensor_descriptors", "block-pointers"),
        ("strict_matmul__ieee_products", "dot"),
        ("squared_relu_bias__autotuned_streaming", "autotuned"),
        ("add_relu__flat", "plain"),
        ("prefill_attention_causal__flash", "dot"),
    ],
)
def test_technique_is_the_most_telling_one(make_elite: MakeElite, name: str, expected: str) -> None:
    candidate = honest(name)
    elite = make_elite(source=candidate.source, backend=candidate.backend)
    assert FEATURES["technique"].of(elite) == expected


def test_all_techniques_are_named() -> None:
    assert techniques(honest("dense_matmul__standing_block_pointers")) == (
        "persistent",
        "block-pointers",
        "dot",
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s0 += a;\n s1 += b;", True),
        ("s0 = fma(a, b, s0);\n s1 = fma(c, d, s1);", True),
        ("float sums[8];\n", True),
        ("s0 += a;\n t1 += b;", False),
        ("x1 = a;\n x2 = b;", False),
    ],
)
def test_accumulators_are_sums_side_by_side(text: str, found: bool) -> None:
    candidate = Candidate(backend="cpp", source=f'S = """\n{text}\n"""\n')
    assert ("accumulators" in techniques(candidate)) == found


def test_techniques_in_comments_do_not_count() -> None:
    kernel = 'S = """\n// tile, #pragma omp simd\nint a;\n"""\n'
    assert techniques(Candidate(backend="cpp", source=kernel)) == ()
    assert techniques(Candidate(backend="triton", source="# autotune\nx = 1\n")) == ()


def test_launches_are_those_observed_on_the_device(make_elite: MakeElite) -> None:
    launches = FEATURES["launches"].of
    seen = (device_kernel("authored", 2), device_kernel("library", 9), device_kernel("authored", 1))
    assert launches(make_elite(device_kernels=seen)) == "3-4"
    assert launches(make_elite(device_kernels=(device_kernel("library", 9),))) == "0"


def test_launches_are_read_from_the_source_otherwise(make_elite: MakeElite) -> None:
    launches = FEATURES["launches"].of
    for name, expected in (
        ("bias_gradient_tokens__two_stages", "2"),
        ("add_relu__flat", "1"),
        ("row_max_index__macro_exports", "2"),
        ("topk_routing__insertion", "1"),
    ):
        candidate = honest(name)
        elite = make_elite(source=candidate.source, backend=candidate.backend)
        assert launches(elite) == expected, name


def test_the_bottleneck_is_what_bounds_most_of_the_time(make_elite: MakeElite) -> None:
    lines = (roofline("launch", 1.0), roofline("memory", 2.0), roofline("launch", 1.5))
    assert FEATURES["bottleneck"].of(make_elite(rooflines=lines)) == "launch"
    assert FEATURES["bottleneck"].of(make_elite(rooflines=lines[:2])) == "memory"


@pytest.mark.parametrize(
    ("shares", "expected"),
    [
        ((share("interpreter", 0.4), share("runtime", 0.3), share("authored", 0.3)), "launch"),
        ((share("library", 0.7), share("authored", 0.3)), "library"),
        ((share("authored", 0.9), share("library", 0.1)), "unknown"),
        ((), "unknown"),
    ],
)
def test_on_the_cpu_the_bottleneck_comes_from_shares_of_the_time(
    make_elite: MakeElite, shares: tuple[KernelShare, ...], expected: str
) -> None:
    assert FEATURES["bottleneck"].of(make_elite(kernels=shares)) == expected
