"""From answers to programs: fences, thoughts, edits, and reasons for what cannot be used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.proposers.model.edits import Edit, EditRefused, apply_edits, find_edits
from kernel_smith.proposers.model.parse import Program, Refusal, parse_answer

BASE = '''import torch

from kernel_smith.inline import cpp

SOURCE = r"""
extern "C" void f(const float* x, float* y, long n) {
    for (long i = 0; i < n; ++i)
        y[i] = x[i] + 1;
}
"""

kernels = cpp(SOURCE)


class ModelNew(torch.nn.Module):
    def forward(self, x):
        y = torch.empty_like(x)
        kernels.f(x, y, x.numel())
        return y
'''
BETTER = BASE.replace("    for (long", "    #pragma omp simd\n    for (long")


def program(text: str, base: str = BASE) -> Program:
    parsed = parse_answer(text, base)
    assert isinstance(parsed, Program), parsed
    return parsed


def reason(text: str, base: str = BASE) -> str:
    parsed = parse_answer(text, base)
    assert isinstance(parsed, Refusal), parsed
    return parsed.reason


@pytest.mark.parametrize("tag", ["python", "py", "", "Python3 title=x", "cpp"])
@pytest.mark.parametrize("fence", ["```", "````", "~~~"])
def test_a_fenced_program_is_found_whatever_its_tag(tag: str, fence: str) -> None:
    found = program(f"Change: vectorise the loop.\n\n{fence}{tag}\n{BETTER}{fence}\nDone.")
    assert found.source == BETTER
    assert (found.mode, found.summary) == ("full", "vectorise the loop.")


def test_a_block_inside_a_list_is_moved_to_the_margin() -> None:
    indented = "\n".join(f"   {line}" if line else "" for line in BETTER.splitlines())
    assert program(f"1. Here:\n   ```python\n{indented}\n   ```\n").source == BETTER


def test_a_block_at_the_margin_is_kept_to_the_letter() -> None:
    spaced = BETTER.replace("{\n", "{\n   \n")
    assert program(f"```python\n{spaced}```\n").source == spaced


def test_the_last_complete_program_counts() -> None:
    draft = BETTER.replace("x[i] + 1", "x[i] + 2")
    text = f"```python\n{draft}```\nNo, better:\n```python\n{BETTER}```\n```bash\nls\n```"
    assert program(text).source == BETTER


def test_a_program_without_a_fence_is_found_after_the_prose() -> None:
    assert program(f"Sure, here it is.\n\n{BETTER}").source == BETTER


@pytest.mark.parametrize(
    "thoughts",
    [
        f"<think>\nMaybe\n```python\n{BASE}```\n</think>\n",
        f"Maybe\n```python\n{BASE}```\n</think>\n",  # the server cut the opening tag off
        "<thinking>a</thinking><think>b</think>",
    ],
)
def test_thoughts_are_no_part_of_the_answer(thoughts: str) -> None:
    assert program(f"{thoughts}```python\n{BETTER}```").source == BETTER


def test_a_thought_without_end_hides_its_drafts() -> None:
    assert "no program" in reason(f"<think>\n```python\n{BETTER}```\n")


@pytest.mark.parametrize("share", [0.2, 0.5, 0.8, 0.97])
def test_half_a_program_is_refused(share: float) -> None:
    cut = BETTER[: int(len(BETTER) * share)]
    assert parse_answer(f"```python\n{cut}", BASE) != parse_answer(f"```python\n{BETTER}```", BASE)
    assert isinstance(parse_answer(f"```python\n{cut}", BASE), Refusal)


def test_a_program_whose_fence_was_forgotten_is_accepted() -> None:
    assert program(f"```python\n{BETTER}").source == BETTER


def test_a_program_in_several_files_is_refused_by_name() -> None:
    main = "import torch\nfrom kernels import f\n\n\nclass ModelNew(torch.nn.Module):\n"
    main += "    def forward(self, x):\n        return f(x)\n"
    text = f"**kernels.py**\n```python\nf = 1\n```\n**main.py**\n```python\n{main}```"
    assert "imports kernels" in reason(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", "no program"),
        ("I cannot do that.", "no program"),
        ("```python\nprint(1)\n```", "`class ModelNew`"),
        ("```python\nclass ModelNew:\n    pass\n```", "`forward`"),
        ("```python\nclass ModelNew(:\n```", "not valid Python: line 1"),
        (f"```python\n{BASE}```", "Change something"),
        ("```python\nclass ModelNew:\n    def forward(self):\n        return '\0'\n```", "Python"),
        ("```python\n# class ModelNew\nx = " + "(" * 5000 + "\n```", "not valid Python"),
    ],
)
def test_the_reason_says_what_is_missing(text: str, expected: str) -> None:
    assert expected in reason(text)


def test_careless_escapes_do_not_warn() -> None:
    source = BETTER.replace("kernels = cpp", 'PATTERN = "\\d"\nkernels = cpp')
    assert program(f"```python\n{source}```").source == source


EDITS = [
    "<<<<<<< SEARCH\n{old}\n=======\n{new}\n>>>>>>> REPLACE",
    "```\n<<<< search\n{old}\n=======\n{new}\n>>>> replace\n```",
    "```diff\n<<<<<<< ORIGINAL\n{old}\n=======\n{new}\n>>>>>>> UPDATED\n```",
    "<SEARCH>\n{old}\n</SEARCH>\n<REPLACE>\n{new}\n</REPLACE>",
    "<<<<<<< SEARCH\n\n{old}\n\n=======\n{new}\n\n>>>>>>>",
]
OLD = "    for (long i = 0; i < n; ++i)"
NEW = "    #pragma omp simd\n    for (long i = 0; i < n; ++i)"


@pytest.mark.parametrize("form", EDITS)
def test_edits_of_every_common_form_are_applied(form: str) -> None:
    found = program("Change: vectorise.\n" + form.format(old=OLD, new=NEW))
    assert (found.source, found.mode, found.summary) == (BETTER, "edits", "vectorise.")


def test_edits_match_in_spite_of_white_space_and_take_the_programs_indentation() -> None:
    text = EDITS[0].format(
        old="for (long i = 0;  i < n; ++i)  ",
        new="#pragma omp simd\nfor (long i = 0; i < n; ++i)",
    )
    assert program(text).source == BETTER
    deeper = EDITS[0].format(old=f"    {OLD}", new="\n".join("    " + x for x in NEW.split("\n")))
    assert program(deeper).source == BETTER


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (EDITS[0].format(old="    y = torch.zeros_like(x)", new="y"), "torch.empty_like(x)"),
        (EDITS[0].format(old="import torch\nkernels = cpp(SOURCE)", new="y"), "order"),
        (EDITS[0].format(old="", new="y"), "empty"),
        ("<<<<<<< SEARCH\nimport torch\n=======\nimport math", "not closed"),
        ("<<<<<<< SEARCH\na\n<<<<<<< SEARCH\nb\n=======\nc\n>>>>>>> REPLACE", "not closed"),
        (EDITS[0].format(old="class ModelNew(torch.nn.Module):", new="class X:"), "ModelNew"),
        (EDITS[0].format(old="import torch", new="import ("), "not valid Python"),
        (EDITS[0].format(old="import torch", new="import torch"), "Change something"),
    ],
)
def test_edits_that_cannot_be_applied_say_why(text: str, expected: str) -> None:
    assert expected in reason(text)


def test_a_search_that_fits_twice_is_refused_with_the_lines() -> None:
    with pytest.raises(EditRefused, match=r"2 places \(lines 1, 3\)"):
        apply_edits("a\nb\na\n", [Edit(("a",), ("c",))])


def test_edits_are_applied_one_after_the_other_and_may_delete() -> None:
    edits = [Edit(("b",), ("x", "y")), Edit(("y", "c"), ())]
    assert apply_edits("a\nb\nc\nd\n", edits) == "a\nx\nd\n"


LINES = st.lists(st.text("abc (=+", min_size=1, max_size=6), min_size=1, max_size=12)


@given(LINES, LINES, st.data())
def test_any_unique_span_can_be_replaced(
    lines: list[str], new: list[str], data: st.DataObject
) -> None:
    numbered = [f"{number}:{line.strip()}" for number, line in enumerate(lines)]
    start = data.draw(st.integers(0, len(lines) - 1))
    end = data.draw(st.integers(start + 1, len(lines)))
    text = EDITS[0].format(
        old="\n".join(numbered[start:end]), new="\n".join(f"new {line}" for line in new)
    )
    edited = apply_edits("\n".join(numbered) + "\n", find_edits(text))
    expected = [*numbered[:start], *(f"new {line}" for line in new), *numbered[end:]]
    assert edited.splitlines() == expected


@given(st.text(max_size=400))
def test_no_text_breaks_the_parser(text: str) -> None:
    assert isinstance(parse_answer(text, BASE), Refusal)


@given(
    st.lists(
        st.sampled_from(
            [
                "```",
                "~~~",
                "<think>",
                "</think>",
                "class ModelNew",
                "x = 1",
                "<<<<<<< SEARCH",
                "=======",
                ">>>>>>> REPLACE",
                "import torch",
                "<search>",
                "</search>",
                "<replace>",
                "</replace>",
            ]
        ),
        max_size=20,
    )
)
def test_no_mixture_of_markers_breaks_the_parser(lines: list[str]) -> None:
    assert isinstance(parse_answer("\n".join(lines), BASE), Program | Refusal)
