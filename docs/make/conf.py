"""How Sphinx makes the site: `make docs`.

The repository itself is the source, so links between pages are the same on the site and in a
checkout, and README.md is the first page of both. Nothing in the site is fetched from elsewhere.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

project = "kernel-smith"
html_title = "kernel-smith"
html_theme = "furo"
html_copy_source = False
html_show_sphinx = False
extensions = ["myst_parser"]
myst_heading_anchors = 4  # links to headings, spelt as on GitHub
root_doc = "README"

SECTIONS = {
    "Tutorial": {"Your first faster kernel": "docs/tutorial"},
    "How-to guides": {
        "Put a kernel into your program": "docs/drop-in",
        "Steer and read a run": "docs/evolution",
        "Judge a kernel": "docs/judging",
        "Look at runs in a browser": "docs/viewer",
        "Let a coding agent drive": "docs/agents",
        "Run benchmarks": "docs/benchmarks",
        "Mine tasks from packages": "docs/mining",
        "Build training data": "docs/training-data",
        "Train a model": "docs/training",
        "Evaluate for a team": "docs/service",
        "Evaluate on a Ray cluster": "docs/ray",
        "Add a backend": "docs/new-backend",
        "Add a method of search": "docs/new-method",
    },
    "Reference": {
        "Commands": "docs/reference/commands",
        "Python": "docs/reference/python",
        "Records": "docs/reference/records",
        "Task files": "docs/task-format",
        "Candidate files": "docs/candidate-format",
        "Backends": "docs/backends",
    },
    "Explanation": {
        "Architecture": "ARCHITECTURE",
        "How far timings can be trusted": "docs/timing",
        "Security": "SECURITY",
        "Measurements": "docs/measurements",
        "Kernels that came out": "results/README",
        "How far it scales": "docs/scale",
    },
    "Project": {
        "Contributing": "CONTRIBUTING",
        "Changelog": "CHANGELOG",
        "Benchmark scripts": "benchmarks/README",
    },
}
include_patterns = ["README.md", "docs/*.md", "docs/reference/*.md"] + [
    f"{page}.md" for pages in SECTIONS.values() for page in pages.values() if "docs" not in page
]
# Folders that need not be walked through.
exclude_patterns = [".*", "build", "src", "tests"]


def _add_navigation(app: Any, docname: str, source: list[str]) -> None:
    """Give the first page the tables of contents that the sidebar is made of."""
    if docname == root_doc:
        for caption, pages in SECTIONS.items():
            entries = "\n".join(f"{title} <{page}>" for title, page in pages.items())
            source[0] += f"\n```{{toctree}}\n:hidden:\n:caption: {caption}\n\n{entries}\n```\n"


def _name_the_first_page(app: Any, error: Exception | None) -> None:
    """Let web servers find the first page under the name that they look for."""
    if error is None and app.builder.name == "html":
        shutil.copy(Path(app.outdir) / "README.html", Path(app.outdir) / "index.html")


def setup(app: Any) -> None:
    app.connect("source-read", _add_navigation)
    app.connect("build-finished", _name_the_first_page)
