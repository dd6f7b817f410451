"""The text to be mined, as one `Library` per source: an installed package, a folder, a file, or an
archive. Files are read and nothing of them is executed: a package is found by its place on the
import path, and archives are read without unpacking them.
"""

from __future__ import annotations

import os
import sys
import tarfile
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from email.parser import HeaderParser
from importlib.machinery import PathFinder
from importlib.metadata import PackageNotFoundError, distribution, packages_distributions
from pathlib import Path, PurePosixPath

from kernel_smith.errors import BadInput, reason_of, why_no_file
from kernel_smith.records.letters import in_letters

_LARGEST_FILE = 2_000_000
_METADATA = (".dist-info/METADATA", "PKG-INFO")
_SKIPPED = frozenset({"test", "tests", "testing", "__pycache__", "site-packages", "node_modules"})


@dataclass(frozen=True)
class Library:
    """Python files by their path, and where they come from."""

    name: str
    version: str
    licence: str
    files: dict[str, str]


def read_library(source: str) -> Library:
    """What a name or a path given by the user holds. Raises `BadInput` if it holds nothing."""
    path = Path(source)
    # Unlike a path's own questions, these answer where there is no permission to look.
    if os.path.isdir(path):
        # A package's own folder is named in its imports, so it belongs to the paths.
        is_package = os.path.exists(path / "__init__.py")
        root = path.resolve().parent if is_package else path.resolve()
        files = dict(_folder_files(path.resolve(), root))
        library = Library(path.resolve().name, "", "", files)
    elif os.path.isfile(path):
        library = _file(path)
    else:
        library = _installed(source)
    if not library.files:
        raise BadInput(
            f"{source}: holds no Python files that can be read, expected at least one",
            hint="name a folder or an archive with .py files in it",
        )
    files = {in_letters(name): text for name, text in library.files.items()}
    return replace(library, name=in_letters(library.name), files=files)


def _file(path: Path) -> Library:
    try:
        if path.suffix == ".py":
            return Library(path.stem, "", "", {path.name: _text(path)})
        if zipfile.is_zipfile(path):
            return _from_archive(path, dict(_zip_files(path)))
        if tarfile.is_tarfile(path):
            return _from_archive(path, dict(_tar_files(path)))
    except Exception as error:  # archives that are damaged or encrypted end in any of a dozen
        raise BadInput(
            f"{path}: cannot be read ({reason_of(error)})", hint="fetch the file again"
        ) from None
    raise BadInput(
        f"{path}: is neither Python text nor an archive, expected .py, .whl, .zip or .tar.gz",
        hint="name a package, a folder, a .py file, a wheel or a source archive",
    )


def _installed(name: str) -> Library:
    folder = _find_package(name)
    if folder is None:
        hint = f"fetch it with `pip download --no-deps {name}` and name the file that it wrote"
        if os.sep in name or name.endswith(".py"):
            hint = "check the path and its permissions"
        why = why_no_file(name).replace("no such file", "no such file or folder")
        raise BadInput(f"{name}: {why}, and no installed package", hint=hint)
    root = folder.parents[name.count(".")] if folder.is_dir() else folder.parent
    found = _folder_files(folder, root) if folder.is_dir() else _one_file(folder)
    version, licence = _installed_metadata(name.partition(".")[0])
    return Library(name, version, licence, dict(found))


def _find_package(name: str) -> Path | None:
    """Where a package lies. Only the path is searched: importing its parents would run them."""
    search, place = list(sys.path), None
    for part in name.split("."):  # by itself: of a parent it would be asked whether it is imported
        spec = PathFinder.find_spec(part, search) if part else None
        if spec is None:
            return None
        search = list(spec.submodule_search_locations or ())
        place = Path(search[0]) if search else Path(spec.origin or "")
    return place if place is not None and place.exists() else None


def _installed_metadata(package: str) -> tuple[str, str]:
    for name in packages_distributions().get(package, [package]):
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        return found.version, _licence(found.read_text("METADATA") or "")
    return "", ""


def _one_file(path: Path) -> Iterator[tuple[str, str]]:
    yield path.name, _text(path)


def _folder_files(folder: Path, root: Path) -> Iterator[tuple[str, str]]:
    """Yield what can be read. What is removed meanwhile, or is not ours to read, is left out."""
    for path in sorted(Path(at, name) for at, _, names in os.walk(folder) for name in names):
        relative = path.relative_to(root).as_posix()
        text = _text_if_there(path) if _wanted(relative) else None
        if text is not None:
            yield relative, text


def _text_if_there(path: Path) -> str | None:
    try:
        wanted = path.is_file() and path.stat().st_size <= _LARGEST_FILE
        return _text(path) if wanted else None
    except OSError:
        return None


def _text(path: Path) -> str:
    return path.read_text("utf-8", errors="replace")


def _zip_files(path: Path) -> Iterator[tuple[str, str]]:
    with zipfile.ZipFile(path) as archive:
        for member in sorted(archive.infolist(), key=lambda m: m.filename):
            if _readable(member.filename, member.file_size):
                yield member.filename, archive.read(member).decode("utf-8", errors="replace")


def _tar_files(path: Path) -> Iterator[tuple[str, str]]:
    with tarfile.open(path) as archive:
        for member in archive:
            content = archive.extractfile(member) if member.isfile() else None
            if content is not None and _readable(member.name, member.size):
                yield member.name, content.read().decode("utf-8", errors="replace")


def _readable(name: str, size: int) -> bool:
    return size <= _LARGEST_FILE and (_wanted(name) or name.endswith(_METADATA))


def _wanted(name: str) -> bool:
    return name.endswith(".py") and not _SKIPPED & set(PurePosixPath(name).parts)


def _from_archive(path: Path, texts: dict[str, str]) -> Library:
    metadata = next((text for name, text in texts.items() if name.endswith(_METADATA)), "")
    headers = HeaderParser().parsestr(metadata)
    return Library(
        name=headers.get("Name", path.name.partition("-")[0]),
        version=headers.get("Version", ""),
        licence=_licence(metadata),
        files={name: text for name, text in texts.items() if name.endswith(".py")},
    )


def _licence(metadata: str) -> str:
    """As the package states it: an expression, one line, or the classifiers."""
    headers = HeaderParser().parsestr(metadata)
    stated = headers.get("License-Expression") or headers.get("License") or ""
    if stated and "\n" not in stated:
        return stated
    classifiers = [c for c in headers.get_all("Classifier", []) if c.startswith("License ::")]
    return ", ".join(c.rpartition("::")[2].strip() for c in classifiers)
