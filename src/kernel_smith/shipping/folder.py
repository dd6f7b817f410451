"""A kernel as a folder that runs without this package, and back.

The folder is a Python package. It holds the kernel, the reference that it falls back to, what was
measured, and copies of the few files of ours that run with it.
"""

from __future__ import annotations

import ast
import json
import os
import shutil
import tempfile
from pathlib import Path

import torch

import kernel_smith
from kernel_smith.errors import BadInput, reason_of, writing
from kernel_smith.inline.dialects import DIALECTS, recipe
from kernel_smith.shipping import standalone
from kernel_smith.shipping.runtime.replacement import Replacement
from kernel_smith.shipping.runtime.spec import KERNEL, MANIFEST, REFERENCE, WEIGHTS, Spec

PACKAGE = "kernel_smith"
"""Where a kernel's `from .inline import cpp` looks, unless it runs from a folder."""
_INLINE = ("library", "processor", "prototype", "signature", "tensors", "tokens")
_ROOT = Path(kernel_smith.__file__).parent

_INIT = '''\
"""{title}

`module(mine)` is a drop-in for a module of yours, `patch(model)` replaces those of a whole model,
`unpatch(model)` takes it back. README.md says more.
"""

from pathlib import Path

from .runtime.replacement import Replacement

replacement = Replacement.read(Path(__file__).parent, __name__)
module, patch, unpatch = replacement.module, replacement.patch, replacement.unpatch
operator = replacement.operator  # exported programs look for it when they are loaded
'''
_README = """\
# {name}

{title}

    import {folder}

    fast = {folder}.module(mine)    # a drop-in that shares the parameters of `mine`
    {folder}.patch(model)           # or all matching modules of a model, in place
    fast.counts                     # how many calls the kernel has answered
    {folder}.unpatch(model)

It needs torch{needs}, and nothing else. The kernel answers calls for which it was verified:

{calls}

All others, and those that are differentiated, are answered by the module's own `forward`.
`manifest.json` says where and how it was measured.
"""


def own_imports(source: str) -> str:
    """Return a candidate whose `kernel_smith.inline` is looked for beside it. Raises `BadInput`."""
    lines = source.splitlines(keepends=True)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import | ast.ImportFrom) and (text := _relative(node)):
            first, last = node.lineno - 1, node.end_lineno or node.lineno
            indent = lines[first][: node.col_offset]
            lines[first:last] = [f"{indent}{text}\n", *[""] * (last - first - 1)]
    return "".join(lines)


def _relative(node: ast.Import | ast.ImportFrom) -> str | None:
    names = [(alias.name, f" as {alias.asname}" if alias.asname else "") for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        listed = ", ".join(name + renamed for name, renamed in names)
        if node.module == "kernel_smith.inline":
            return f"from .inline import {listed}"
        if node.module == "kernel_smith" and all(name == "inline" for name, _ in names):
            return f"from . import {listed}"
        ours = (node.module or "").partition(".")[0] == "kernel_smith"
    else:
        if [name for name, renamed in names if renamed] == ["kernel_smith.inline"]:
            return f"from . import inline{names[0][1]}"
        ours = any(name.partition(".")[0] == "kernel_smith" for name, _ in names)
    if ours:
        raise BadInput(
            f"line {node.lineno} of the kernel imports {ast.unparse(node)}, which a folder lacks",
            hint="import what compiles from kernel_smith.inline",
        )
    return None


def save(spec: Spec, path: Path, weights: dict[str, torch.Tensor] | None = None) -> Path:
    """Write the folder. Raises `BadInput` where it cannot be written."""
    path = Path(os.path.expanduser(path)).absolute()
    if not path.name.isidentifier():
        raise BadInput(
            f"{path.name!r} is no name that Python can import, expected letters, digits and _",
            hint=f"save to {path.parent / spec.identifier.rpartition('_')[0]}",
        )
    if os.path.exists(path) and not (path / MANIFEST).exists():
        raise BadInput(f"{path} exists, and is no saved kernel", hint="choose another folder")
    with writing(path, "choose another folder"):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=".saving-") as name:
            folder = Path(name) / path.name
            folder.mkdir()
            _write(spec, folder, weights)
            if path.exists():
                shutil.rmtree(path)
            folder.rename(path)
    return path


def _write(spec: Spec, folder: Path, weights: dict[str, torch.Tensor] | None) -> None:
    title = f"A verified kernel for `{spec.name}`, written by kernel-smith."
    texts = {
        "__init__.py": _INIT.format(title=title),
        "README.md": _readme(spec, folder.name, title),
        KERNEL: spec.kernel,
        REFERENCE: spec.reference,
        MANIFEST: spec.manifest(),
    }
    for file in sorted((_ROOT / "shipping" / "runtime").glob("*.py")):
        texts[f"runtime/{file.name}"] = file.read_text("utf-8")
    if "from .inline import" in spec.kernel or "from . import inline" in spec.kernel:
        for name in _INLINE:
            texts[f"inline/{name}.py"] = _moved(_ROOT / "inline" / f"{name}.py")
        texts["inline/__init__.py"] = _moved(Path(standalone.__file__))
        texts[f"inline/{standalone.COMPILERS}"] = json.dumps(_compilers(), indent=2) + "\n"
    for name, text in texts.items():
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_text(text, "utf-8")
    if weights is not None:
        torch.save(weights, folder / WEIGHTS)


def _moved(file: Path) -> str:
    return file.read_text("utf-8").replace("from kernel_smith.inline.", "from .")


def _compilers() -> dict[str, dict[str, object]]:
    rows: dict[str, dict[str, object]] = {}
    for dialect in DIALECTS:
        row = recipe(dialect)
        rows[dialect] = {
            "variable": row.variable,
            "compilers": row.compilers,
            "places": row.places,
            "arguments": row.arguments,
            "link_arguments": row.link_arguments,
            "choices": row.choices,
            "architecture": row.architecture,
            "home": row.home_folder(),
            "install": row.install,
        }
    return rows


def _readme(spec: Spec, folder: str, title: str) -> str:
    needs = {"cpp": " and a C++ compiler", "triton": " and triton"}
    backend = str(spec.facts.get("backend", ""))
    calls = "\n".join(
        f"- `{name}`: {sizes or 'as in reference.py'}" for name, sizes in spec.workloads.items()
    )
    return _README.format(
        name=spec.name,
        title=title,
        folder=folder,
        calls=calls,
        needs=needs.get(backend, f" and the {backend} compiler"),
    )


def load(path: Path) -> Replacement:
    """Return what was saved there. Raises `BadInput` if nothing was."""
    try:
        spec = Spec.read(path)
    except (OSError, ValueError, TypeError) as error:
        raise BadInput(
            f"{path}: no saved kernel ({reason_of(error)})",
            hint="name a folder that `save` has written",
        ) from None
    return Replacement(spec, str(path.absolute()), PACKAGE)
