"""Whatever happens to the file ends in an error that says what to do, and loses nothing else."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from sample_events import candidate, proposed, started, steps

from kernel_smith.errors import BadInput
from kernel_smith.records import Candidate
from kernel_smith.store import Store, StoreError, schema
from kernel_smith.store.schema import MIGRATIONS

NOBODY = 65534
CREATIONS = 10

SMALL_FILES = """
import resource, sys
from pathlib import Path
from sample_events import proposed
from kernel_smith.records import Candidate
from kernel_smith.store import Store, StoreError

store = Store.open(Path(sys.argv[1]))
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, 200_000))
stored = 0
try:
    for step in range(200):
        source = "".join(f"{step * 7919 * n % 1000003} " for n in range(1000))
        store.append("run-1", proposed(step, candidate=Candidate(source=source)))
        stored += 1
except StoreError as error:
    print(stored, error.what, error.hint)
"""

LONG_WRITER = """
import sqlite3, sys
other = sqlite3.connect(sys.argv[1], isolation_level=None)
other.execute("BEGIN IMMEDIATE")
print("writing", flush=True)
sys.stdin.readline()
other.execute("COMMIT")
"""


def noise(step: int) -> Candidate:
    """A program that hardly compresses."""
    return Candidate(source="".join(f"{step * 7919 * n % 1000003} " for n in range(1000)))


def count(path: Path) -> int:
    with Store.open(path) as store:
        return sum(1 for _ in store.events("run-1"))


@contextlib.contextmanager
def powerless() -> Iterator[None]:
    """Permissions do not hold the superuser back, so be somebody else for a while."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.fixture
def public_store() -> Iterator[Path]:
    """A complete store in a folder that everybody may enter and nobody may change."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "store"
        folder.mkdir()
        with Store.open(folder / "runs.sqlite", create=True) as store:
            store.append("run-1", started())
        (folder / "runs.sqlite").chmod(0o444)
        folder.chmod(0o555)
        os.chmod(name, 0o755)
        yield folder / "runs.sqlite"
        folder.chmod(0o755)


def test_a_full_disk_costs_the_event_at_hand_and_nothing_else(store: Store, path: Path) -> None:
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages + 20}")
    acknowledged = []

    def fill() -> None:
        for step in range(1000):
            acknowledged.append(store.append("run-1", proposed(step, candidate=noise(step))))

    with pytest.raises(StoreError, match="the disk is full") as caught:
        fill()
    assert "make room" in caught.value.hint
    last = acknowledged[-1]
    assert [sequence for sequence, _ in store.events("run-1")] == list(range(1, last + 1))
    store._connection.execute("PRAGMA max_page_count = 1000000")
    assert store.append("run-1", proposed(2000, candidate=noise(2000))) == last + 1
    store.close()
    assert count(path) == last + 1


def test_a_limit_on_file_sizes_ends_like_a_full_disk(store: Store, path: Path) -> None:
    store.close()
    done = subprocess.run(
        [sys.executable, "-c", SMALL_FILES, str(path)],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
        check=True,
    )
    stored, message = done.stdout.split(" ", 1)
    assert "was not stored" in message and "ulimit -f" in message
    assert 0 < int(stored) < 200
    assert count(path) == int(stored) + 1


def test_a_writer_that_does_not_end_is_named_as_the_reason(store: Store, path: Path) -> None:
    other = subprocess.Popen(
        [sys.executable, "-c", LONG_WRITER, str(path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    with other, Store.open(path, patience=0.1) as hasty:
        assert other.stdout is not None and other.stdin is not None
        assert other.stdout.readline() == "writing\n"
        with pytest.raises(StoreError, match="another process has been writing"):
            hasty.append("run-1", proposed(0))
        assert sum(1 for _ in hasty.events("run-1")) == 1  # reading does not wait
        other.stdin.write("enough\n")
        other.stdin.flush()
        other.wait()
        assert hasty.append("run-1", proposed(0)) == 2


def test_two_readers_follow_a_writer(store: Store, path: Path) -> None:
    with Store.open(path) as first, Store.open(path) as second:
        slow = second.events("run-1")
        next(slow)
        for number, event in enumerate(steps(100), start=2):
            assert store.append("run-1", event) == number
            assert first.runs()[0].events == number
        assert sum(1 for _ in slow) == 200


def test_a_damaged_table_is_named_with_a_way_to_rescue_it(store: Store, path: Path) -> None:
    for event in steps(100):
        store.append("run-1", event)
    store.close()
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    with pytest.raises(StoreError, match="damaged") as caught, Store.open(path) as broken:
        list(broken.events("run-1"))
    assert "recover" in caught.value.hint


@pytest.mark.parametrize("column", ["content = x'00ff'", "content = 'not JSON'", "id = id + 1000"])
def test_a_damaged_text_names_the_event(store: Store, path: Path, column: str) -> None:
    for event in steps(1):
        store.append("run-1", event)
    with sqlite3.connect(path) as vandal:
        vandal.execute(f"UPDATE texts SET {column} WHERE id = 2")
    vandal.close()
    with (
        pytest.raises(StoreError, match=r"event 3 of run run-1 cannot be read|damaged"),
        Store.open(path) as broken,
    ):
        list(broken.events("run-1"))


def test_half_a_file_is_damaged(store: Store, path: Path) -> None:
    for event in steps(100):
        store.append("run-1", event)
    store.close()
    os.truncate(path, path.stat().st_size // 2)
    with pytest.raises(StoreError, match="damaged"), Store.open(path) as broken:
        list(broken.events("run-1"))


def test_a_file_that_is_no_database_is_left_alone(path: Path) -> None:
    path.write_text("my notes\n" * 100)
    for create in (False, True):
        with pytest.raises(StoreError, match="not a run store"):
            Store.open(path, create=create)
    assert path.read_text() == "my notes\n" * 100


def test_the_database_of_another_program_is_left_alone(path: Path) -> None:
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE notes (text)")
    other.close()
    before = path.read_bytes()
    for create in (False, True):
        with pytest.raises(StoreError, match="another program"):
            Store.open(path, create=create)
    assert path.read_bytes() == before


def test_an_empty_file_is_filled_only_when_asked(path: Path) -> None:
    path.touch()
    with pytest.raises(StoreError, match="an empty file"):
        Store.open(path)
    with Store.open(path, create=True) as store:
        assert store.runs() == []


def test_a_missing_file_says_how_to_get_one(path: Path) -> None:
    with pytest.raises(BadInput, match="no such file") as caught:
        Store.open(path)
    assert "optimize" in caught.value.hint
    assert not path.exists()


def test_what_is_there_and_is_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=f"{tmp_path}: a folder, expected a run store"):
        Store.open(tmp_path)
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BadInput, match="a pipe or a device, expected a file"):
        Store.open(pipe, create=True)


def test_a_folder_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StoreError, match="cannot be written"):
        Store.open(tmp_path / "file" / "runs.sqlite", create=True)


def test_a_newer_file_is_refused_and_left_alone(store: Store, path: Path) -> None:
    store._connection.execute(f"PRAGMA user_version = {len(MIGRATIONS) + 1}")
    store.close()
    with pytest.raises(StoreError, match="a newer kernel-smith") as caught:
        Store.open(path)
    assert "upgrade" in caught.value.hint


def test_the_file_says_which_migrations_it_has_seen(store: Store, path: Path) -> None:
    with sqlite3.connect(path) as reader:
        versions = [version for (version,) in reader.execute("SELECT version FROM migrations")]
    reader.close()
    assert versions == list(range(1, len(MIGRATIONS) + 1))


def test_a_file_of_the_first_version_is_brought_up_to_date(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old.sqlite"
    with monkeypatch.context() as patch:
        patch.setattr(schema, "MIGRATIONS", MIGRATIONS[:1])
        Store.open(old, create=True).close()
    with Store.open(old) as store:
        store.append("run-1", started())
        for event in steps(2):
            store.append("run-1", event)
        (summary,) = store.runs()
    assert summary.best_candidate == candidate(1).content_hash


def test_a_read_only_file_can_be_read_and_not_written(public_store: Path) -> None:
    public_store.parent.chmod(0o777)
    with powerless(), Store.open(public_store) as store:
        assert sum(1 for _ in store.events("run-1")) == 1
        with pytest.raises(StoreError, match="the file is read-only"):
            store.append("run-1", proposed(0))


def test_an_archived_store_can_be_read_and_neither_written_nor_locked(public_store: Path) -> None:
    with powerless(), Store.open(public_store) as store:
        assert sum(1 for _ in store.events("run-1")) == 1
        assert store.runs()[0].state == "interrupted"
        with pytest.raises(StoreError, match="the file is read-only"):
            store.append("run-1", proposed(0))
        with pytest.raises(StoreError, match="cannot be written"):
            store.lock("run-1")


@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.5, 0.77, 0.999])
def test_a_truncated_log_loses_its_end_and_nothing_before(
    store: Store, path: Path, tmp_path: Path, share: float
) -> None:
    store._connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    events = list(steps(20))
    for event in events:
        store.append("run-1", event)
    copy = tmp_path / "copy.sqlite"
    shutil.copy(path, copy)
    log = Path(f"{path}-wal").read_bytes()
    Path(f"{copy}-wal").write_bytes(log[: int(len(log) * share)])
    with Store.open(copy) as survivor:
        left = [event for _, event in survivor.events("run-1")]
        assert left == [started(), *events][: len(left)]
        assert 1 <= len(left) < len(events) + 1
        assert survivor.append("run-1", proposed(99)) == len(left) + 1


def test_processes_that_create_the_same_store_at_once_agree(path: Path) -> None:
    script = Path(__file__).with_name("eager_creators.py")
    subprocess.run([sys.executable, str(script), str(path.parent)], check=True)
    for number in range(CREATIONS):
        with Store.open(path.parent / f"{number}.sqlite") as store:
            assert sorted(store.run_ids_matching("")) == list("abcdef")
