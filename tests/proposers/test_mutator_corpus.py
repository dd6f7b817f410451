"""The edits on every program there is: they never fail, and what they write can be read."""

from __future__ import annotations

import ast
import random
from pathlib import Path

import pytest
from compiled_kernels import LOGSUMEXP, NORM, TWO, WHOLE
from hypothesis import given, settings
from hypothesis import strategies as st

from kernel_smith.proposers.mutator import EDITS
from kernel_smith.proposers.mutator.cpp.text import cpp_texts

TESTS = Path(__file__).parents[1]
SUITE = TESTS.parent / "src" / "kernel_smith" / "tasks" / "suite"
PROGRAMS = {
    "cpp": sorted([*(TESTS / "honest" / "candidates").glob("*.py"), *SUITE.glob("*/start_cpp.py")]),
    "triton": sorted((TESTS / "gpu" / "honest").glob("*.py")),
}
# Programs that people write hold too little of what some edits look for.
COMPILED = {"cpp": {}, "triton": {"norm": NORM, "sums": LOGSUMEXP, "rows": WHOLE, "two": TWO}}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("backend", "paths"),
    [
        pytest.param("cpp", PROGRAMS["cpp"][::2], id="cpp"),
        pytest.param("triton", PROGRAMS["triton"][::2], id="triton"),
        pytest.param("cpp", PROGRAMS["cpp"], id="all-cpp", marks=pytest.mark.sweep),
        pytest.param("triton", PROGRAMS["triton"], id="all-triton", marks=pytest.mark.sweep),
    ],
)
def test_edits_apply_to_every_honest_program(backend: str, paths: list[Path]) -> None:
    rng = random.Random(0)
    applied = set()
    written = {str(path): path.read_text(encoding="utf-8") for path in paths}
    for name, source in (written | COMPILED[backend]).items():
        count = len(cpp_texts(source)) if backend == "cpp" else 0
        for edit in EDITS:
            sites = edit.sites(source) if backend in edit.backends else []
            named = [f"{site.part}: {site}" for site in sites]
            assert len(set(named)) == len(named), (name, edit.name, named)
            for site in rng.sample(sites, min(1, len(sites))):
                changed = edit.apply(source, site)
                assert changed != source, (name, edit.name, str(site))
                ast.parse(changed)
                if backend == "cpp":
                    assert len(cpp_texts(changed)) == count, (name, edit.name, str(site))
                applied.add(edit.name)
    assert applied == {edit.name for edit in EDITS if backend in edit.backends}


@settings(max_examples=25)
@given(st.sampled_from(PROGRAMS["cpp"]), st.randoms(use_true_random=False))
def test_edits_bear_programs_with_lines_missing(path: Path, rng: random.Random) -> None:
    lines = path.read_text(encoding="utf-8").splitlines(keepends=True)
    kept = "".join(line for line in lines if rng.random() > 0.02)
    for edit in EDITS:
        for site in edit.sites(kept)[:2]:
            assert edit.apply(kept, site) != kept
