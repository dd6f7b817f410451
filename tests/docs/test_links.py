"""Links between the Markdown files of the repository lead somewhere, headings included."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINK = re.compile(r"\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]+))?\)")


def pages() -> list[Path]:
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "*.md"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    return [ROOT / name for name in listed.stdout.splitlines()]


def without_code(text: str) -> str:
    """Return Markdown without what is no prose: fenced and indented blocks, inline code."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.M)
    return re.sub(r"`[^`\n]*`", "", text)


def anchors(text: str) -> list[str]:
    """Return the names that GitHub gives to headings."""
    text = re.sub(r"^```.*?^```", "", text, flags=re.S | re.M)
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return [re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings]


def broken(page: Path) -> list[str]:
    """Return the links of a page that lead nowhere, or to one of several headings."""
    found = []
    for target, anchor in LINK.findall(without_code(page.read_text(encoding="utf-8"))):
        there = (page.parent / target).resolve() if target else page
        if not there.exists():
            found.append(target)
        elif anchor and anchors(there.read_text(encoding="utf-8")).count(anchor) != 1:
            found.append(f"{target}#{anchor}")
    return found


@pytest.mark.parametrize(
    ("link", "leads"),
    [
        ("[a](other.md)", True),
        ("[a](other.md#two-words)", True),
        ("[a](#here)", True),
        ("[a](https://example.org/nowhere.md)", True),
        ("`[a](missing.md)`", True),
        ("[a](missing.md)", False),
        ("[a](other.md#three-words)", False),
        ("[a](other.md#twice)", False),
    ],
)
def test_a_broken_link_is_found(tmp_path: Path, link: str, leads: bool) -> None:
    (tmp_path / "other.md").write_text("# Two words!\n\n## Twice\n\n## Twice\n")
    page = tmp_path / "page.md"
    page.write_text(f"# Here\n\n{link}\n")
    assert (broken(page) == []) == leads


def test_no_link_of_the_repository_is_broken() -> None:
    wrong = {str(page.relative_to(ROOT)): broken(page) for page in pages()}
    assert len(wrong) > 25
    assert {page: links for page, links in wrong.items() if links} == {}
