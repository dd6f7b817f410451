"""Compiled libraries, kept by content."""

import dataclasses
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.inline.cache import ObjectCache, cache_root, object_key
from kernel_smith.inline.toolchain import find_toolchain

KEY = "ab" * 32


def write(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


def test_what_was_put_is_found_read_only(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "cache")
    assert cache.get(KEY) is None
    kept = cache.put(KEY, write(tmp_path / "built", b"library"))
    assert cache.get(KEY) == kept
    assert kept.read_bytes() == b"library"
    assert kept.stat().st_mode & 0o777 == 0o444
    assert kept.is_relative_to(tmp_path / "cache" / "objects")


@pytest.mark.parametrize("harm", ["changed", "truncated", "no digest", "no library"])
def test_a_harmed_entry_is_dropped_and_can_be_replaced(tmp_path: Path, harm: str) -> None:
    cache = ObjectCache(tmp_path / "cache")
    built = write(tmp_path / "built", b"library")
    kept = cache.put(KEY, built)
    if harm.startswith("no "):
        victim = kept if harm == "no library" else kept.with_name(kept.name + ".sha256")
        victim.unlink()
    else:
        kept.chmod(0o644)
        kept.write_bytes(b"Library" if harm == "changed" else b"lib")
    assert cache.get(KEY) is None
    assert not kept.parent.exists()
    assert cache.put(KEY, built).read_bytes() == b"library"
    assert cache.get(KEY) == kept


def test_a_harmed_entry_is_replaced_by_a_put_alone(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "cache")
    built = write(tmp_path / "built", b"library")
    kept = cache.put(KEY, built)
    kept.chmod(0o644)
    kept.write_bytes(b"garbage")
    assert cache.put(KEY, built).read_bytes() == b"library"


def test_of_several_puts_at_once_one_stays_whole(tmp_path: Path) -> None:
    cache = ObjectCache(tmp_path / "cache")
    contents = [bytes([number]) * 100_000 for number in range(8)]
    together = threading.Barrier(len(contents))
    kept: list[Path] = []

    def put(number: int, content: bytes) -> None:
        built = write(tmp_path / f"built-{number}", content)
        together.wait()
        kept.append(cache.put(KEY, built))

    threads = [threading.Thread(target=put, args=pair) for pair in enumerate(contents)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert kept == [cache.get(KEY)] * len(contents)
    assert kept[0].read_bytes() in contents
    assert not list(cache.folder.glob("new-*"))


def test_an_unwritable_cache_is_explained(tmp_path: Path) -> None:
    blocked = write(tmp_path / "file", b"")
    with pytest.raises(MissingPrerequisite, match=r"objects: Not a directory\n") as caught:
        ObjectCache(blocked).put(KEY, write(tmp_path / "built", b"library"))
    assert "KERNEL_SMITH_CACHE" in caught.value.hint


def test_the_root_follows_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    monkeypatch.setenv("KERNEL_SMITH_CACHE", str(tmp_path / "own"))
    assert cache_root() == tmp_path / "own"
    assert ObjectCache().folder == tmp_path / "own" / "objects"
    monkeypatch.delenv("KERNEL_SMITH_CACHE")
    assert cache_root() == tmp_path / "xdg" / "kernel-smith"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert cache_root() == tmp_path / "home" / ".cache" / "kernel-smith"


def test_a_user_without_a_home_is_told_where_caches_were_to_be(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As in a container that was started for a number of a user."""
    for name in ("HOME", "XDG_CACHE_HOME", "KERNEL_SMITH_CACHE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("os.getuid", lambda: 987_654)
    assert cache_root() == Path("/.cache/kernel-smith")
    monkeypatch.setenv("KERNEL_SMITH_CACHE", "~/caches")
    assert cache_root() == Path.cwd() / "~" / "caches"


def test_a_relative_root_becomes_absolute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KERNEL_SMITH_CACHE", "here")
    assert cache_root() == Path.cwd() / "here"


def test_the_key_changes_with_everything_that_decides_the_bytes() -> None:
    toolchain = find_toolchain()
    newer = dataclasses.replace(toolchain, version=toolchain.version + " newer")
    other = dataclasses.replace(toolchain, command_prefix=(*toolchain.command_prefix, "-g"))
    keys = {
        object_key(toolchain, "source", ()),
        object_key(toolchain, "other source", ()),
        object_key(toolchain, "source", ("-O2",)),
        object_key(toolchain, "source", ("-O2", "-g0")),
        object_key(toolchain, "source", ("-O2-g0",)),
        object_key(newer, "source", ()),
        object_key(other, "source", ()),
    }
    assert len(keys) == 7
    assert object_key(toolchain, "source", ["-O2"]) in keys


@given(st.lists(st.text(), max_size=3), st.text(), st.lists(st.text(), max_size=3), st.text())
def test_keys_are_equal_only_for_equal_inputs(
    flags: list[str], source: str, other_flags: list[str], other_source: str
) -> None:
    toolchain = find_toolchain()
    same = (flags, source) == (other_flags, other_source)
    one = object_key(toolchain, source, flags)
    assert (one == object_key(toolchain, other_source, other_flags)) is same
