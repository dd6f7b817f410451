"""The texts that prompts are made of. A folder of the user's replaces them file by file.

One such folder is ours: `brief`, short prompts for models with little room or little patience.
"""

from __future__ import annotations

from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from string import Template

from kernel_smith.errors import BadInput
from kernel_smith.plugins import load_backend, offered_backends

BRIEF = "brief"

_DIALECT = "dialect_"


class Templates:
    """Plain text with `$names`. What is put in for a name is not looked at again."""

    def __init__(self, folder: str | None = None) -> None:
        own = resources.files("kernel_smith.proposers.model") / "templates"
        self._texts = _texts_in(own)
        if folder == BRIEF:
            self._texts |= _texts_in(own / BRIEF)
        elif folder is not None:
            self._texts |= _read_folder(Path(folder), set(self._texts))

    def fill(self, template: str, /, **values: object) -> str:
        text = Template(self._texts[template])
        try:
            return text.substitute(values).strip()
        except KeyError as error:
            known = ", ".join(f"${value}" for value in values) or "none"
            raise BadInput(
                f"template {template}.md: unknown placeholder ${error.args[0]}",
                hint=f"it may use: {known}; write $$ for a dollar sign",
            ) from None
        except ValueError as error:
            raise BadInput(
                f"template {template}.md: {error}", hint="write $$ for a dollar sign"
            ) from None

    def dialect(self, backend: str) -> str:
        name = _DIALECT + backend
        if name not in self._texts and backend in offered_backends():
            return str(load_backend(backend).prompt)
        if name not in self._texts:
            known = [text.removeprefix(_DIALECT) for text in self._texts if _DIALECT in text]
            raise BadInput(
                f"no prompt tells a model how to write for the backend {backend!r}; "
                f"there are some for: {', '.join(sorted(known))}",
                hint=f"write {name}.md and name its folder as `templates` in the settings",
            )
        return self.fill(name)


def _texts_in(folder: Traversable) -> dict[str, str]:
    return {
        item.name.removesuffix(".md"): item.read_text(encoding="utf-8")
        for item in folder.iterdir()
        if item.name.endswith(".md")
    }


def _read_folder(folder: Path, known: set[str]) -> dict[str, str]:
    if not folder.is_dir():
        raise BadInput(
            f"{folder}: not a folder",
            hint=f"`templates` names a folder with .md files in it, or is {BRIEF!r}",
        )
    texts = {path.stem: path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.md"))}
    for name in texts:
        if name not in known and not name.startswith(_DIALECT):
            raise BadInput(
                f"{folder / name}.md: no template has this name",
                hint=f"names: {', '.join(sorted(known))}",
            )
    return texts
