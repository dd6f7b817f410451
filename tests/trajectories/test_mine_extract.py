"""Reading libraries, and cutting classes out of them."""

from __future__ import annotations

import ast
import os
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.errors import BadInput
from kernel_smith.trajectories.mine.classes import module_classes
from kernel_smith.trajectories.mine.closure import Extract, Shelf, extract
from kernel_smith.trajectories.mine.family import family_of
from kernel_smith.trajectories.mine.identity import structure
from kernel_smith.trajectories.mine.library import Library, read_library
from kernel_smith.trajectories.mine.refusal import Refused
from kernel_smith.trajectories.mine.safety import check_harmless

HEAD = "import torch\nfrom torch import nn\nimport torch.nn.functional as F\n"


def cut(name: str, **files: str) -> Extract:
    """The extract of a class; files are `package_0_module="text"`."""
    texts = {f"{path.replace('_0_', '/')}.py": HEAD + text for path, text in files.items()}
    shelf = Shelf.of(Library("made", "1.0", "MIT", texts))
    for file, node in module_classes(shelf):
        if node.name == name:
            return extract(shelf, file, node)
    raise AssertionError(f"no module class {name}")


def defined(found: Extract) -> list[str]:
    tree = ast.parse(found.body)
    return [s.name for s in tree.body if isinstance(s, (ast.ClassDef, ast.FunctionDef))]


def refusal(name: str, **files: str) -> Refused:
    with pytest.raises(Refused) as caught:
        check_harmless(cut(name, **files).text)
    return caught.value


def test_what_a_class_needs_comes_along_before_it_and_nothing_else_does() -> None:
    found = cut(
        "Block",
        a="""
SCALE = 2.0
UNUSED = 3.0
def helper(x):
    return inner(x) * SCALE
def inner(x):
    return F.relu(x)
def unused(x):
    return x
class Base(nn.Module):
    pass
class Block(Base):
    def forward(self, x):
        return helper(x)
""",
    )
    assert sorted(defined(found)) == ["Base", "Block", "helper", "inner"]
    assert defined(found)[-1] == "Block"
    assert "SCALE = 2.0" in found.body and "UNUSED" not in found.body
    assert "import torch.nn.functional as F" in found.imports
    exec(compile(found.text, "extract", "exec"), {})


def test_other_files_of_the_library_are_followed() -> None:
    found = cut(
        "Top",
        pkg_0___init__="from .low import act",
        pkg_0_low="def activate(x):\n    return x.relu()\nact = activate\n",
        pkg_0_star="from .low import *\ndef twice(x):\n    return activate(activate(x))\n",
        pkg_0_sub_0_top="""
from .. import act as renamed
from pkg.star import twice
class Top(nn.Module):
    def forward(self, x):
        return renamed(twice(x))
""",
    )
    assert {"activate", "twice", "Top"} <= set(defined(found))
    assert "renamed = act" in found.body
    exec(compile(found.text, "extract", "exec"), {})


def test_ballast_is_left_behind() -> None:
    found = cut(
        "Quiet",
        a='''
import logging
from elsewhere import Config, auto_docstring
logger = logging.getLogger(__name__)
@auto_docstring
class Quiet(nn.Module):
    """Says nothing.

    At length."""
    def __init__(self, config: Config, width: int = 4):
        """Builds."""
        super().__init__()
        self.size: "Config" = width
        if width > 3:
            logger.warning("wide")
    def forward(self, x: torch.Tensor) -> Config:
        return x * self.size
''',
    )
    assert "logg" not in found.text and "elsewhere" not in found.text
    assert "Builds" not in found.body and found.docstring.startswith("Says nothing.")
    assert "width: int=4" in found.body and "x: torch.Tensor" in found.body


def test_fields_of_a_configuration_are_listed_with_the_defaults_of_its_class() -> None:
    found = cut(
        "Layer",
        m_0_modeling_x="""
class Layer(nn.Module):
    def __init__(self, config):
        super().__init__()
        self.size, self.kind = config.hidden_size, config.norm_kind
    def forward(self, x):
        return x * self.size
""",
        m_0_configuration_x="class XConfig:\n    norm_kind: str = 'pre'\n    other: int = 4\n",
    )
    assert found.config_fields == ("hidden_size", "norm_kind")
    assert found.config_defaults == {"norm_kind": "pre"}


FORWARD = "class Bad(nn.Module):\n    def forward(self, x):\n        return {}\n"


@pytest.mark.parametrize(
    ("text", "reason", "word"),
    [
        ("import einops\n" + FORWARD.format("einops.reduce(x)"), "needs-import", "einops"),
        ("import os\n" + FORWARD.format("x * os.getpid()"), "needs-import", "os"),
        (FORWARD.format("__import__('os')"), "unsafe", "__import__"),
        (FORWARD.format("open('f', 'w')"), "unsafe", "open"),
        (FORWARD.format("torch.save(x, 'f')"), "unsafe", "torch.save"),
        (FORWARD.format("x.numpy().tofile('f')"), "unsafe", "tofile"),
        (FORWARD.format("torch.os.getpid()"), "unsafe", "os"),
        (FORWARD.format("().__class__.__base__"), "unsafe", "__base__"),
        (FORWARD.format("nowhere(x)"), "unknown-name", "nowhere"),
        ("if 1:\n    A = 1\nelse:\n    A = 2\n" + FORWARD.format("x + A"), "several", "A"),
        ("class Model:\n    pass\n" + FORWARD.format("Model() and x"), "reserved-name", "Model"),
        (FORWARD.format("x") + "    def f(self):\n        import socket\n", "needs", "socket"),
        ("import torch.distributed as d\n" + FORWARD.format("d.all(x)"), "needs-import", "torch"),
    ],
)
def test_what_cannot_stand_alone_is_refused_with_a_reason(
    text: str, reason: str, word: str
) -> None:
    refused = refusal("Bad", a=text)
    assert refused.reason.startswith(reason)
    assert word in refused.detail


def test_two_meanings_of_a_name_are_refused() -> None:
    refused = refusal(
        "Both",
        p_0_one="def f(x):\n    return x\ndef g(x):\n    return f(x)\n",
        p_0_two="from p.one import g\ndef f(x):\n    return -x\n"
        "class Both(nn.Module):\n    def forward(self, x):\n        return g(f(x))\n",
    )
    assert refused.reason == "name-conflict"


def test_only_modules_with_a_forward_pass_count() -> None:
    text = HEAD + "from pkg.b import Far\n"
    text += "class Plain:\n    def forward(self, x):\n        return x\n"
    text += "class Empty(nn.Module):\n    pass\n"
    text += "class Own(nn.Module):\n    def forward(self, x):\n        return x\n"
    for heir in ("Heir(Own)", "Conv(nn.Conv2d)", "FarHeir(Far)"):
        text += f"class {heir}:\n    pass\n"
    far = HEAD + "class Far(nn.Module):\n    def forward(self, x):\n        return x\n"
    shelf = Shelf.of(Library("made", "", "", {"pkg/a.py": text, "pkg/b.py": far, "pkg/c.py": "("}))
    names = {node.name for _, node in module_classes(shelf)}
    assert names == {"Own", "Heir", "Conv", "FarHeir", "Far"}


def test_the_structure_ignores_names_and_wording_and_nothing_else() -> None:
    one = "class A(nn.Module):\n    def forward(self, x):\n        y = x + 1\n        return y\n"
    other = "class B(nn.Module):\n    '''Text.'''\n    def forward(self, inp):\n"
    other += "        out = inp + 1  # more\n        return out\n"
    assert structure(one) == structure(other)
    assert structure(one) != structure(one.replace("+ 1", "+ 2"))


@given(st.text(alphabet="abcXYZ_", min_size=1, max_size=8).filter(str.isidentifier))
def test_renaming_a_class_never_changes_its_structure(name: str) -> None:
    text = "class {0}(nn.Module):\n    def forward(self, x):\n        return {0}.f(x)\n"
    assert structure(text.format(f"C{name}")) == structure(text.format("Other"))


def test_families_follow_names_first_and_calls_second() -> None:
    assert family_of("WindowAttention", "nn.Conv2d(") == "attention"
    assert family_of("LayerNorm2d", "") == "normalisation"
    assert family_of("Block", "self.c = nn.Conv2d(3, 4)") == "convolution"
    assert family_of("Block", "return x * 2") == "elementwise"


METADATA = "Metadata-Version: 2.1\nName: tiny\nVersion: 3.1\nLicense-Expression: MIT\n\ntext\n"
SOURCE = "raise SystemExit('this must never run')\n"


def test_archives_are_read_in_place_with_version_and_licence(tmp_path: Path) -> None:
    wheel = tmp_path / "tiny-3.1-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny/__init__.py", SOURCE)
        archive.writestr("tiny/tests/test_x.py", SOURCE)
        archive.writestr("tiny-3.1.dist-info/METADATA", METADATA)
    (tmp_path / "tiny").mkdir()
    (tmp_path / "tiny" / "m.py").write_text(SOURCE)
    (tmp_path / "tiny" / "PKG-INFO").write_text(METADATA)
    with tarfile.open(tmp_path / "tiny-3.1.tar.gz", "w:gz") as tar:
        tar.add(tmp_path / "tiny", "tiny-3.1/tiny")
    library = read_library(str(wheel))
    assert library == Library("tiny", "3.1", "MIT", {"tiny/__init__.py": SOURCE})
    again = read_library(str(tmp_path / "tiny-3.1.tar.gz"))
    assert (again.version, list(again.files)) == ("3.1", ["tiny-3.1/tiny/m.py"])


def test_an_installed_package_is_found_without_importing_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    inner = tmp_path / "neverimported" / "inner"
    inner.mkdir(parents=True)
    (tmp_path / "neverimported" / "__init__.py").write_text(SOURCE)
    (inner / "__init__.py").write_text(SOURCE)
    monkeypatch.syspath_prepend(str(tmp_path))
    whole = read_library("neverimported")
    assert set(whole.files) == {"neverimported/__init__.py", "neverimported/inner/__init__.py"}
    part = read_library("neverimported.inner")
    assert set(part.files) == {"neverimported/inner/__init__.py"}
    assert read_library("pydantic").version
    part = tmp_path / "shared" / "between" / "several"
    part.mkdir(parents=True)
    (part / "m.py").write_text(SOURCE)
    assert set(read_library("shared.between.several").files) == {"shared/between/several/m.py"}
    with pytest.raises(BadInput, match="no installed package"):
        read_library("shared..several")


def test_what_is_removed_while_a_folder_is_read_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("gone.py", "there.py"):
        (tmp_path / name).write_text(SOURCE)
    os.mkfifo(tmp_path / "pipe.py")
    (tmp_path / os.fsdecode(b"no\xfftext\x1b.py")).write_text(SOURCE)
    reading = Path.read_text

    def read(path: Path, *how: Any, **more: Any) -> str:
        (tmp_path / "gone.py").unlink(missing_ok=True)
        return reading(path, *how, **more)

    monkeypatch.setattr(Path, "read_text", read)
    library = read_library(str(tmp_path))
    assert list(library.files) == [
        "no\N{REPLACEMENT CHARACTER}text\N{REPLACEMENT CHARACTER}.py",
        "there.py",
    ]
    (tmp_path / "gone.py").write_text(SOURCE)
    with pytest.raises(BadInput, match=r"gone\.py: cannot be read") as caught:
        read_library(str(tmp_path / "gone.py"))
    assert caught.value.hint


@pytest.mark.parametrize("damage", ["encrypted", "cut off", "mixed up"])
def test_an_archive_that_cannot_be_read_is_refused(tmp_path: Path, damage: str) -> None:
    wheel = tmp_path / "tiny.whl"
    with zipfile.ZipFile(wheel, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("tiny.py", 100 * SOURCE)
    data = bytearray(wheel.read_bytes())
    match damage:
        case "encrypted":
            data[6] |= 1
            data[data.index(b"PK\x01\x02") + 8] |= 1
        case "cut off":
            del data[60:]
        case "mixed up":
            data[50:60] = b"nonsense!!"
    wheel.write_bytes(data)
    with pytest.raises(BadInput, match=r"tiny\.whl") as caught:
        read_library(str(wheel))
    assert caught.value.hint


def test_what_holds_nothing_is_refused_with_the_remedy(tmp_path: Path) -> None:
    (tmp_path / "data.bin").write_bytes(b"\x00\x01")
    for source in ("no_such_package_at_all", str(tmp_path / "data.bin"), str(tmp_path)):
        with pytest.raises(BadInput) as caught:
            read_library(source)
        assert caught.value.hint
