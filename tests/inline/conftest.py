"""What the tests of the compiled dialects share: a cache of their own, and a way to compile."""

from collections.abc import Callable
from pathlib import Path

import pytest

from kernel_smith.inline.build import build
from kernel_smith.inline.cache import ObjectCache
from kernel_smith.inline.library import Library
from kernel_smith.inline.signature import prototypes


@pytest.fixture(scope="session")
def shared_cache(tmp_path_factory: pytest.TempPathFactory) -> ObjectCache:
    return ObjectCache(tmp_path_factory.mktemp("cache"))


@pytest.fixture(scope="session")
def compile_path(shared_cache: ObjectCache) -> Callable[[str], Path]:
    def compile_source(source: str) -> Path:
        result = build(source, cache=shared_cache)
        assert result.path is not None, result.log
        return result.path

    return compile_source


@pytest.fixture(scope="session")
def compile_library(compile_path: Callable[[str], Path]) -> Callable[[str], Library]:
    return lambda source: Library(compile_path(source), prototypes(source))


@pytest.fixture(autouse=True)
def own_user_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    root = tmp_path / "user-cache"
    monkeypatch.setenv("KERNEL_SMITH_CACHE", str(root))
    return root
