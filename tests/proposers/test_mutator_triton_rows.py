"""The edits that were learnt from told programs, on kernels as the compiler's seeds have them."""

from __future__ import annotations

import importlib.util
import json
import re
from itertools import pairwise
from pathlib import Path

import pytest
from compiled_kernels import LOGSUMEXP, NORM, TWICE, TWO, WHOLE
from hypothesis import given
from hypothesis import strategies as st
from interpreted import Interpreter

from kernel_smith.proposers.mutator import EDITS, Edit
from kernel_smith.proposers.mutator.edit import Site, Splice, everywhere

EXAMPLES = [
    (
        "row-in-registers",
        NORM,
        "tmp7 = tl.where(r0_mask & xmask, tmp2.to(out_ptr0.dtype.element_ty), 0.0)",
    ),
    ("row-in-registers", NORM, "tmp8 = tmp1\n"),
    ("row-in-registers", NORM, "x, w, buf0, buf1, 5, 331, XBLOCK=1, R0_BLOCK=512, num_warps=2"),
    ("aligned-loop", LOGSUMEXP, "for r0_offset in range(0, tiles * R0_BLOCK, R0_BLOCK):"),
    ("aligned-loop", LOGSUMEXP, "r0_mask = tl.full([1, R0_BLOCK], True, tl.int1)"),
    ("one-pass-softmax", LOGSUMEXP, "online_softmax_combine(_tmp3, _tmp10, tmp2, True)"),
    ("aligned-row", WHOLE, "head = (16 - row_start % 16) % 16"),
    ("tiles-in-flight", NORM, "tmp7_tile1 = tl.load(out_ptr0 + (r0_1_tile1 + 331*x0)"),
    ("tiles-in-flight", LOGSUMEXP, "range(0, (r0_numel) // (4 * R0_BLOCK) * (4 * R0_BLOCK)"),
    ("unmasked-programs", TWO, "    if xoffset + XBLOCK <= xnumel:\n"),
    ("one-launch", TWO, "turned(in_ptr0_2, out_ptr0_2, ynumel, xnumel_2, YBLOCK, XBLOCK_2"),
    ("one-launch", TWICE, "_part_0(in_ptr0, out_ptr0, xnumel, XBLOCK, tl.program_id(0))"),
]

RUN_ALL = """
import importlib.util, json, sys, torch
torch.set_num_threads(1)
x = torch.linspace(-3, 3, 5 * 331).mul(7).sin().reshape(5, 331)
w = torch.linspace(0.5, 1.5, 331)
answers = {}
for name, path in json.load(sys.stdin).items():
    spec = importlib.util.spec_from_file_location("candidate", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    answers[name] = module.ModelNew()(x.clone(), w)
worst = {
    name: float((answer - answers[name.partition(":")[0]]).abs().max())
    for name, answer in answers.items()
}
print(json.dumps(worst))
"""


def edit_named(name: str) -> Edit:
    return next(edit for edit in EDITS if edit.name == name)


def applied(source: str, *names: str) -> str:
    """The source after edits, each at the first of its sites."""
    for name in names:
        edit = edit_named(name)
        sites = edit.sites(source)
        assert sites, f"{name} has no site"
        source = edit.apply(source, sites[0])
    return source


@pytest.mark.parametrize(("name", "source", "expected"), EXAMPLES)
def test_an_edit_writes_what_its_name_says(name: str, source: str, expected: str) -> None:
    edit = edit_named(name)
    written = [edit.apply(source, site) for site in edit.sites(source)]
    assert any(expected in text for text in written), written[-1:]


CHAINS = {
    "all at once": (NORM, ("row-in-registers", "aligned-row")),
    "one aligned pass": (LOGSUMEXP, ("one-pass-softmax", "aligned-loop", "tiles-in-flight")),
    "two aligned passes": (LOGSUMEXP, ("aligned-loop", "tiles-in-flight")),
    "pieces in flight": (TWO, ("rows-per-program", "tiles-in-flight")),
    "unmasked side by side": (TWO, ("unmasked-programs", "one-launch")),
}


@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("triton") is None, reason="needs triton")
def test_edited_kernels_compute_the_same(interpreter: Interpreter, tmp_path: Path) -> None:
    """By the interpreter: two sites of every example, the widest among them, and chains."""
    texts: dict[str, str] = {}
    originals = {NORM: "norm", LOGSUMEXP: "log", WHOLE: "whole", TWO: "two", TWICE: "twice"}
    for source, name in originals.items():
        texts[name] = source
    for name, source in {(name, source) for name, source, _ in EXAMPLES}:
        edit = edit_named(name)
        sites = edit.sites(source)
        for site in (sites[0], sites[-1]):
            texts[f"{originals[source]}: {name}, {site}"] = edit.apply(source, site)
    for name, (source, chain) in CHAINS.items():
        texts[f"{originals[source]}: {name}"] = applied(source, *chain)
    paths = {}
    for number, (name, text) in enumerate(texts.items()):
        path = tmp_path / f"program_{number}.py"
        path.write_text(text)
        paths[name] = str(path)
    done = interpreter.run(RUN_ALL, tmp_path, json.dumps(paths))
    assert done.returncode == 0, done.stderr[-2000:]
    worst = json.loads(done.stdout)
    assert len(worst) == len(texts) > 20
    assert {name: by for name, by in worst.items() if not by < 2e-6} == {}


@pytest.mark.parametrize(
    ("name", "source"), sorted({(name, source) for name, source, _ in EXAMPLES})
)
def test_an_edit_is_not_made_twice(name: str, source: str) -> None:
    edited = applied(source, name)
    if name == "tiles-in-flight":  # tiles of tiles, which is more of the same
        return
    assert len(edit_named(name).sites(edited)) < len(edit_named(name).sites(source))


REFUSED = {
    "a size that is not known": (
        "row-in-registers",
        NORM.replace("5, 331, XBLOCK", "5, n, XBLOCK"),
    ),
    "a block that says more than a length": (
        "row-in-registers",
        NORM.replace("xoffset = tl.program_id(0)", "xoffset = R0_BLOCK // 64 * tl.program_id(0)"),
    ),
    "several rows in a tile": ("aligned-row", WHOLE.replace("XBLOCK=1", "XBLOCK=2")),
    "rows of a length that is aligned anyway": ("aligned-row", WHOLE.replace("331", "332")),
    "what is no reduction that can be joined": (
        "aligned-row",
        WHOLE.replace("triton_helpers.max2(tmp4, 1)", "tl.cumsum(tmp4, 1)"),
    ),
    "iterations that build on one another": (
        "aligned-loop",
        LOGSUMEXP.replace(
            "tmp4 = triton_helpers.maximum(_tmp3, tmp2)", "tmp4 = _tmp3 * 0.5 + tmp2"
        ),
    ),
    "sums of something else than the powers of what was compared": (
        "one-pass-softmax",
        LOGSUMEXP.replace("tmp8 = tl.exp(tmp7)", "tmp8 = tl.exp(tmp7 * 0.5)"),
    ),
    "another mask": (
        "one-pass-softmax",
        LOGSUMEXP.replace("_tmp10 = tl.where(r0_mask & xmask,", "_tmp10 = tl.where(r0_mask,"),
    ),
    "a loop that reads what it stores": (
        "tiles-in-flight",
        LOGSUMEXP.replace(
            "tmp2 = tl.broadcast", "tl.store(in_ptr0 + (r0_1), tmp0)\n        tmp2 = tl.broadcast"
        ),
    ),
    "few programs": ("unmasked-programs", TWO.replace("1655, XBLOCK=64", "1655, XBLOCK=512")),
    "vectors that are moved anyway": (
        "unmasked-programs",
        TWO.replace("1655, XBLOCK", "1664, XBLOCK"),
    ),
    "a launch that reads what the other one writes": (
        "one-launch",
        TWO.replace("            x, buf1, 5, 331", "            buf0, buf1, 5, 331"),
    ),
    "a launch that writes what the other one reads": (
        "one-launch",
        TWO.replace("            x, buf1, 5, 331", "            x, x, 5, 331"),
    ),
    "something between the launches": (
        "one-launch",
        TWO.replace("        turned[", "        buf0.add_(1)\n        turned["),
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_cannot_be_proved_is_left_alone(what: str) -> None:
    name, source = REFUSED[what]
    sites = edit_named(name).sites(source)
    touched = [
        site for site in sites if what != "a loop that reads what it stores" or "no. 1" in str(site)
    ]
    assert touched == []


def test_what_may_have_been_overwritten_is_read_again() -> None:
    """The output is the first input, and the second may share memory with it for all one knows;
    what was stored is held all the same."""
    aliased = NORM.replace(
        "buf0 = torch.empty((5, 331), dtype=torch.float32, device=x.device)", "buf0 = x"
    )
    edited = applied(aliased, "row-in-registers")
    assert "tmp7 = tl.where(" in edited and "tmp8 = tl.load(in_ptr1" in edited


def test_registers_hold_no_row_that_is_too_long() -> None:
    longer = NORM.replace("331", "40001")
    assert edit_named("row-in-registers").sites(longer) == []


def test_a_longer_row_gets_more_threads() -> None:
    edited = applied(NORM.replace("331", "8001"), "row-in-registers")
    assert "R0_BLOCK=8192, num_warps=8" in edited


@given(row=st.integers(0, 10**6), size=st.integers(128, 5000).filter(lambda n: n % 4))
def test_body_and_ends_are_all_elements_of_a_row_once(row: int, size: int) -> None:
    edited = applied(WHOLE.replace("331", str(size)), "aligned-row")
    wanted = ("row_start = ", "head = ", "body = ")
    lines = [line.strip() for line in edited.splitlines() if line.strip().startswith(wanted)]
    known = {"xoffset": row, "r0_numel": size}
    exec("\n".join(lines), known)
    head, body = known["head"], known["body"]
    ends = [e if e < 16 else head + body + e - 16 for e in range(32)]
    kept = [place for e, place in enumerate(ends) if (e < head if e < 16 else place < size)]
    assert sorted([*range(head, head + body), *kept]) == list(range(size))
    assert (row * size + head) % 16 == 0 == body % 16


@given(row=st.integers(0, 10**6), size=st.integers(200, 5000).filter(lambda n: n % 4))
def test_blocks_and_what_is_left_are_all_elements_of_a_row_once(row: int, size: int) -> None:
    edited = applied(LOGSUMEXP.replace("331", str(size)), "aligned-loop")
    wanted = ("row_start = ", "head = ", "tiles = ")
    lines = [line.strip() for line in edited.splitlines() if line.strip().startswith(wanted)]
    known = {"xoffset": row, "r0_numel": size, "R0_BLOCK": 64}
    exec("\n".join(lines), known)
    head, blocks = known["head"], known["tiles"] * 64
    left = [r if r < head else r + blocks for r in range(-(-(size - blocks) // 64) * 64)]
    kept = [place for place in left if place < size]
    assert sorted([*range(head, head + blocks), *kept]) == list(range(size))
    assert (row * size + head) % 16 == 0


def test_one_site_changes_all_places_alike() -> None:
    edit = edit_named("tiles-in-flight")
    sites = [site for site in edit.sites(NORM) if site.choice == "2 tiles"]
    assert [site.places for site in sites] == [2, 1, 1]
    one_by_one = edit.apply(NORM, sites[0])
    assert len(re.findall(r"range\(0, \(r0_numel\) // \(2 \* R0_BLOCK\)", one_by_one)) == 2


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 6)), max_size=12))
def test_places_that_overlap_are_not_changed_together(spans: list[tuple[int, int]]) -> None:
    sites = [Site(str(n), (Splice(a, a + b, "x"),)) for n, (a, b) in enumerate(spans)]
    together = [site for site in everywhere(sites, 16) if site.places > 1]
    for site in together:
        pieces = sorted(site.splices, key=lambda piece: piece.start)
        assert all(a.end <= b.start and a.start < b.start for a, b in pairwise(pieces))
        assert site.places == len(pieces)
    assert everywhere(sites, 16)[len(together) :] == sites
