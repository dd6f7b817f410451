"""How Triton knows itself: as surely as by its content, without reading it."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from kernel_smith.inline import triton_key

triton = pytest.importorskip("triton")


@pytest.fixture(autouse=True)
def own_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(triton.runtime.cache, "triton_key", triton.runtime.cache.triton_key)
    triton_key._key.cache_clear()


def test_another_library_has_another_key(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    library = tmp_path / "_C" / "libtriton.so"
    library.parent.mkdir()
    library.write_bytes(b"one")
    monkeypatch.setattr(triton, "__file__", str(tmp_path / "__init__.py"))
    triton_key.know_triton_by_its_date()
    keys = [triton.runtime.cache.triton_key()]
    library.write_bytes(b"longer")
    triton_key._key.cache_clear()
    keys.append(triton.runtime.cache.triton_key())
    os.utime(library, (1, 1))
    triton_key._key.cache_clear()
    keys.append(triton.runtime.cache.triton_key())
    assert len(set(keys)) == 3
    assert all(key.startswith(f"{triton.__version__}-") for key in keys)


def test_the_library_that_is_installed_has_a_key() -> None:
    triton_key.know_triton_by_its_date()
    assert triton.runtime.cache.triton_key() == triton.runtime.cache.triton_key()


def test_without_triton_nothing_happens(monkeypatch: pytest.MonkeyPatch) -> None:
    before = triton.runtime.cache.triton_key
    monkeypatch.setitem(sys.modules, "triton", None)
    monkeypatch.setattr(triton_key, "find_spec", lambda name: None)
    triton_key.know_triton_by_its_date()
    assert triton.runtime.cache.triton_key is before
