"""What is to be known of a project to put an operation into a checkout of it."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from kernel_smith.errors import BadInput
from kernel_smith.shipping.targets.op import Op


class Target:
    """One project. Subclasses say what differs, in class variables and small methods."""

    name: ClassVar[str]
    root: ClassVar[str] = "."
    """The folder of a checkout that the project's imports start from."""
    folder: ClassVar[str]
    """Where operations are, from the root; by it a checkout is known."""
    tests: ClassVar[str]
    benchmarks: ClassVar[str]
    has_interpreter: ClassVar[bool] = True
    """Can its Triton kernels be interpreted where there is no GPU?"""
    interpreting: ClassVar[str] = ""
    """What pytest is to be told for that, beside the file."""
    width: ClassVar[int] = 88
    """The longest line."""
    header: ClassVar[str] = ""
    """The licence header of every file."""
    formatters: ClassVar[Sequence[Sequence[str]]] = ()
    """Commands that bring files into the project's form; the paths of the files follow."""

    def check(self, checkout: Path) -> None:
        """Raise `BadInput` unless this is a checkout of the project."""
        if not (checkout / self.root / self.folder).is_dir():
            expected = Path(self.root, self.folder)
            raise BadInput(
                f"{checkout} is no checkout of {self.name}: there is no folder {expected}",
                hint="name the folder that the project was cloned to: --checkout PATH",
            )

    def module_folder(self, op: Op) -> str:
        """Tell where the operation goes, from the root."""
        return self.folder

    def test_folder(self, op: Op) -> str:
        """Tell where its tests go, from the checkout."""
        return self.tests

    def test_extra(self, op: Op) -> str:
        """Return what the project wants to see in a file of tests, after the imports."""
        return ""

    def test_ending(self, op: Op) -> str:
        """Return what the project wants to see at the end of a file of tests."""
        return ""

    def adapted(self, text: str) -> str:
        """Return a text with the project's own way to import things."""
        return text

    def registered(self, op: Op) -> Mapping[str, Callable[[str], str]]:
        """Files of the checkout that must name the operation, and how they change."""
        return {}

    def paths(self, op: Op) -> tuple[str, str, str]:
        """Tell where module, tests and benchmark go, from the checkout."""
        module = Path(self.root, self.module_folder(op), f"{op.name}.py")
        test = Path(self.test_folder(op), f"test_{op.name}.py")
        return str(module), str(test), str(Path(self.benchmarks, f"benchmark_{op.name}.py"))

    def files(self, op: Op) -> dict[str, str]:
        """Return the new files."""
        dotted = ".".join([*Path(self.module_folder(op)).parts, op.name])
        test = op.test_text(
            dotted, self.test_extra(op), self.test_ending(op), interpreted=self._interprets(op)
        )
        texts = (op.module_text(), test, op.benchmark_text(dotted))
        return {
            path: self.header + self._wrapped(self.adapted(text)).rstrip() + "\n"
            for path, text in zip(self.paths(op), texts, strict=True)
        }

    def _interprets(self, op: Op) -> bool:
        return self.has_interpreter and op.is_interpretable

    def _wrapped(self, text: str) -> str:
        """Return the text with comments that fit into lines; all else is left to formatters."""
        return re.sub(r"^( *# ).+$", self._comment, text, flags=re.MULTILINE)

    def _comment(self, found: re.Match[str]) -> str:
        if len(found[0]) <= self.width:
            return found[0]
        text = found[0].removeprefix(found[1])
        return textwrap.fill(text, self.width, initial_indent=found[1], subsequent_indent=found[1])

    def changed(self, op: Op, checkout: Path) -> dict[str, str]:
        """Files that are there, as they are to be. Raises `BadInput` where one cannot be read."""
        texts = {}
        for path, change in self.registered(op).items():
            try:
                texts[path] = change((checkout / path).read_text("utf-8"))
            except OSError as error:
                raise BadInput(
                    f"{checkout / path} cannot be read ({error.strerror})",
                    hint=f"check that file out; {self.name} names its operations there",
                ) from None
        return texts

    def commands(self, op: Op) -> list[str]:
        """Tell how to try the operation there."""
        _, test, benchmark = self.paths(op)
        prefix = "" if self.root == "." else f"PYTHONPATH={self.root} "
        tests = f"{prefix}python -m pytest {test}"
        options = f" {self.interpreting}" if self.interpreting else ""
        without_gpu = [f"TRITON_INTERPRET=1 {tests}{options}    # without a GPU"]
        first = without_gpu if self._interprets(op) else []
        return [*first, tests, f"{prefix}python {benchmark}"]


def exported(text: str, statement: str, name: str) -> str:
    """Return a package's text that also imports and lists a name: each beside its kin, in their
    order."""
    lines = text.splitlines(keepends=True)
    imports = [i for i, line in enumerate(lines) if line.startswith("from ")]
    after = [i for i in imports if lines[i] < statement]
    # An import may go on for some lines, up to a closing bracket.
    place = _end_of_statement(lines, after[-1]) if after else (imports or [0])[0]
    lines.insert(place, statement)
    start = next((i for i, line in enumerate(lines) if line.startswith("__all__ = [")), None)
    if start is not None:
        quoted = [line for line in lines[start + 1 :] if line.strip().startswith(("'", '"'))]
        quote = quoted[0].strip()[0] if quoted else '"'
        entry = f"    {quote}{name}{quote},\n"
        end = next(i for i in range(start, len(lines)) if lines[i].startswith("]"))
        is_sorted = quoted == sorted(quoted)
        place = next((i for i in range(start + 1, end) if is_sorted and lines[i] > entry), end)
        lines.insert(place, entry)
    return "".join(lines)


def _end_of_statement(lines: list[str], start: int) -> int:
    if lines[start].rstrip().endswith("("):
        return 1 + next(i for i in range(start, len(lines)) if lines[i].startswith(")"))
    return start + 1
