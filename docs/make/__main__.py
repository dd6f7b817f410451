"""Write the reference pages from the code, or see whether they are up to date.

python docs/make            # writes docs/reference/*.md
python docs/make --check    # exits with 1 and names the pages that do not match the code
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import commands
import python_api
import records

FOLDER = Path(__file__).parents[1] / "reference"
COMMAND = "python docs/make"
PAGES = {"commands.md": commands.page, "python.md": python_api.page, "records.md": records.page}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog=COMMAND, description="Write the reference pages.")
    parser.add_argument("--check", action="store_true", help="only say which pages are stale")
    chosen = parser.parse_args(arguments)
    texts = {FOLDER / name: make() for name, make in PAGES.items()}
    if not chosen.check:
        FOLDER.mkdir(exist_ok=True)
        for path, text in texts.items():
            path.write_text(text, encoding="utf-8")
        return 0
    stale = [path for path, text in texts.items() if not path.is_file() or path.read_text() != text]
    if not stale:
        return 0
    names = ", ".join(f"docs/reference/{path.name}" for path in stale)
    print(f"error: pages that do not match the code: {names}", file=sys.stderr)
    print(f"hint: run `{COMMAND}`", file=sys.stderr)
    return 1


if __name__ == "__main__":
    sys.exit(main())
