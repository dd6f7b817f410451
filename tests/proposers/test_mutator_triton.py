"""Every Triton edit on an example: it says what it should, and the interpreter finds no change."""

from __future__ import annotations

import ast
import importlib.util
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from interpreted import Interpreter
from test_mutator_triton_rows import EXAMPLES as EXAMPLES_OF_ROWS

from kernel_smith.proposers.mutator import EDITS, Edit
from kernel_smith.proposers.mutator.edit import UNKNOWN, Machine, Splice, splice
from kernel_smith.proposers.mutator.triton.edits import TRITON_EDITS
from kernel_smith.proposers.mutator.triton.text import TritonText

HEAD = "import torch\nimport triton\nimport triton.language as tl\n"

SOFTMAX = (
    HEAD
    + '''

@triton.jit
def softmax(x, y, columns, BLOCK: tl.constexpr):
    """One row per program."""
    row = tl.program_id(0).to(tl.int64)
    largest = tl.full((BLOCK,), -1e30, tl.float32)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + c, mask=c < columns, other=-1e30)
        largest = tl.maximum(largest, v)
    top = tl.max(largest, 0)
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(x + row * columns + c, mask=c < columns, other=-1e30)
        total += tl.exp(v - top)
    whole = tl.sum(total, 0)
    for start in range(0, columns, BLOCK):
        c = start + tl.arange(0, BLOCK)
        v = tl.load(
            x + row * columns + c,
            mask=c < columns,
            other=-1e30,
        )
        tl.store(y + row * columns + c, tl.exp(v - top) / whole, mask=c < columns)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        softmax[(x.shape[0],)](x, y, x.shape[1], BLOCK=16)
        return y
'''
)
TRANSPOSE = (
    HEAD
    + """

@triton.jit
def transpose(x, y, rows, columns, BLOCK: tl.constexpr):
    r = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    c = tl.program_id(axis=1) * BLOCK + tl.arange(0, BLOCK)
    inside = (r < rows)[:, None] & (c < columns)[None, :]
    v = tl.load(x + r[:, None] * columns + c[None, :], mask=inside)
    tl.store(y + c[None, :] * rows + r[:, None], v, mask=inside)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        rows, columns = x.shape
        y = torch.empty(columns, rows)
        transpose[(triton.cdiv(rows, 8), triton.cdiv(columns, 8))](x, y, rows, columns, BLOCK=8)
        return y
"""
)

EXAMPLES = [
    ("pipeline-loop", SOFTMAX, "in tl.range(0, columns, BLOCK, num_stages=3):"),
    ("unroll-kernel-loop", SOFTMAX, "in tl.range(0, columns, BLOCK, loop_unroll_factor=2):"),
    ("group-programs", TRANSPOSE, "c = grouped_1 * BLOCK + tl.arange(0, BLOCK)"),
    ("swap-grid-axes", TRANSPOSE, "[(triton.cdiv(columns, 8), triton.cdiv(rows, 8))]"),
    ("persistent-programs", SOFTMAX, "softmax[(min(x.shape[0], 264),)]"),
    ("rows-per-program", SOFTMAX, "        row = program.to(tl.int64)"),
    ("eviction-policy", SOFTMAX, 'other=-1e30, eviction_policy="evict_last")'),
    ("eviction-policy", SOFTMAX, 'other=-1e30, eviction_policy="evict_first"\n'),
    ("cache-modifier", TRANSPOSE, 'v, mask=inside, cache_modifier=".cs")'),
    ("contiguity-hint", TRANSPOSE, "r = tl.max_contiguous(tl.multiple_of(tl.program_id(0) * BLOCK"),
    ("reciprocal", SOFTMAX, "tl.exp(v - top) * (1.0 / whole)"),
    ("narrow-offsets", SOFTMAX, "row = tl.program_id(0)\n"),
]

RUN_ALL = """
import importlib.util, json, sys, torch
x = torch.linspace(-3, 3, 9 * 21).sin().reshape(9, 21)
answers = {}
pairs = json.load(sys.stdin)
for path in {path for pair in pairs for path in pair}:
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    answers[path] = module.ModelNew()(x)
print(json.dumps([float((answers[a] - answers[b]).abs().max()) for a, b in pairs]))
"""


def edit_named(name: str) -> Edit:
    return next(edit for edit in EDITS if edit.name == name)


@pytest.mark.parametrize(("name", "source", "expected"), EXAMPLES)
def test_an_edit_writes_what_its_name_says(name: str, source: str, expected: str) -> None:
    edit = edit_named(name)
    written = [edit.apply(source, site) for site in edit.sites(source)]
    wanted = expected.strip()
    assert any(wanted in text for text in written), written


def test_every_triton_edit_has_an_example() -> None:
    examples = {name for name, _, _ in (*EXAMPLES, *EXAMPLES_OF_ROWS)}
    assert {edit.name for edit in TRITON_EDITS} == examples


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_edited_kernels_compute_the_same(interpreter: Interpreter, tmp_path: Path) -> None:
    before = {source: tmp_path / f"{k}.py" for k, source in enumerate((SOFTMAX, TRANSPOSE))}
    for source, path in before.items():
        path.write_text(source)
    pairs, names = [], []
    for name, source in sorted({(name, source) for name, source, _ in EXAMPLES}):
        edit = edit_named(name)
        for number, site in enumerate(edit.sites(source)[-2:]):
            path = tmp_path / f"{name}_{number}_{before[source].stem}.py"
            path.write_text(edit.apply(source, site))
            pairs.append((str(before[source]), str(path)))
            names.append(f"{name}, {site}")
    done = interpreter.run(RUN_ALL, tmp_path, json.dumps(pairs))
    assert done.returncode == 0, done.stderr[-2000:]
    differences = json.loads(done.stdout)
    assert {n: d for n, d in zip(names, differences, strict=True) if not d < 1e-6} == {}


def test_a_kernel_that_returns_early_is_not_put_into_a_loop() -> None:
    early = SOFTMAX.replace(
        "    top = tl.max", "    if columns == 0:\n        return\n    top = tl.max"
    )
    assert edit_named("persistent-programs").sites(early) == []
    assert edit_named("rows-per-program").sites(SOFTMAX.replace("row =", "x += 0\n    row =")) == []


def test_a_kernel_with_another_use_keeps_its_grid() -> None:
    other = TRANSPOSE + "\nalias = transpose\n"
    assert edit_named("swap-grid-axes").sites(other) == []


@pytest.mark.parametrize("name", ["eviction-policy", "cache-modifier"])
def test_nobody_says_twice_how_a_load_is_cached(name: str) -> None:
    edit = edit_named(name)
    assert any(site.place.startswith("load no. 1 ") for site in edit.sites(SOFTMAX))
    for said in ('eviction_policy="evict_last"', 'cache_modifier=".cg"'):
        source = SOFTMAX.replace("other=-1e30)", f"other=-1e30, {said})")
        assert not any(site.place.startswith("load no. 1 ") for site in edit.sites(source))


def test_text_that_is_not_python_offers_nothing() -> None:
    assert [edit.sites("import triton.language as tl\ndef (") for edit in EDITS] == [[]] * len(
        EDITS
    )


TWO_STATEMENTS = "first = (1,\n         2)\n\n\n@decorated(3)\ndef second():\n    return first\n"


@given(st.data())
def test_a_change_is_python_as_the_whole_file_is(data: st.DataObject) -> None:
    """Though only the statements that it changes are read."""
    size = len(TWO_STATEMENTS)
    start = data.draw(st.integers(0, size))
    end = data.draw(st.integers(start, min(size, start + 6)))
    piece = Splice(start, end, data.draw(st.sampled_from(["", "4", "(", ")", "\n", " ", "@x\n"])))
    text = TritonText(TWO_STATEMENTS, ast.parse(TWO_STATEMENTS), UNKNOWN)
    try:
        ast.parse(splice(TWO_STATEMENTS, [piece]))
    except SyntaxError:
        whole = False
    else:
        whole = True
    assert text.is_python_with([piece]) == whole


@pytest.mark.parametrize(
    "division", ["(a + b) / c", "a / (b + c)", "a / (b / c)", "(a - b) / (c * a)", "a - b / c"]
)
def test_a_reciprocal_divides_the_same_by_the_same(division: str) -> None:
    """`ast` does not count the parentheses around an expression as part of it."""
    source = f"{HEAD}\n@triton.jit\ndef kernel(a, b, c):\n    value = {division}\n"
    edit = edit_named("reciprocal")
    assert edit.sites(source)
    for site in edit.sites(source):
        edited = edit.apply(source, site).rpartition("value = ")[2]
        numbers = {"a": 3.0, "b": 5.0, "c": 7.0}
        assert eval(edited, numbers) == pytest.approx(eval(division, numbers))


def test_as_many_programs_are_kept_as_fit_this_gpu() -> None:
    edit = edit_named("persistent-programs")
    sites = edit.sites(SOFTMAX, Machine(multiprocessors=100))
    assert [site.choice for site in sites] == ["200 programs", "800 programs"]
    assert "min(x.shape[0], 200)" in edit.apply(SOFTMAX, sites[0])


def test_narrower_offsets_are_the_same_sums() -> None:
    source = f"{HEAD}\n@triton.jit\ndef kernel(a, b, c):\n    at = (a + b).to(tl.int64) * c\n"
    edit = edit_named("narrow-offsets")
    (site,) = edit.sites(source)
    assert edit.apply(source, site).endswith("    at = (a + b) * c\n")
