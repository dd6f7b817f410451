"""A confined process writes its scratch folder alone, within bounds, and reads what it is given."""

from __future__ import annotations

import errno
import importlib
import os
from functools import partial
from pathlib import Path

import numpy
import pytest

import kernel_smith
from kernel_smith.evaluation.sandbox.confine import landlock, mounts, privileges

PACKAGE = Path(kernel_smith.__file__).parent
EVERYWHERE = (
    *(Path.home(), Path.cwd(), Path("/tmp"), Path("/var/tmp"), Path("/dev/shm")),
    *(PACKAGE, Path(numpy.__file__).parent),
)
NAME = "kernel-smith-was-here"


def error_of(action):
    try:
        action()
    except OSError as error:
        return errno.errorcode[error.errno]
    return None


def writing(folders):
    """Try to create a file in each folder; where did it work?"""
    return [str(f) for f in folders if error_of(lambda f=f: (f / NAME).write_text("x")) is None]


@pytest.mark.parametrize("layer", ["all layers", landlock.FILES, mounts.READ_ONLY])
def test_nothing_is_written_outside_scratch_and_each_layer_alone_sees_to_it(
    confined, refuse, open_folder, layer
):
    if layer == landlock.FILES:
        refuse("mount_setattr")
    elif layer == mounts.READ_ONLY:
        refuse("landlock_create_ruleset")
    folders = (*EVERYWHERE, open_folder)
    needs = [landlock.FILES, mounts.READ_ONLY] if layer == "all layers" else [layer]
    assert confined.value(lambda: writing(folders), *needs) == []
    assert not any((folder / NAME).exists() for folder in folders)


def test_existing_files_outside_are_neither_changed_truncated_nor_removed(confined, open_folder):
    victim = open_folder / "victim"
    victim.write_text("precious")
    victim.chmod(0o666)

    def attempt():
        return [
            error_of(lambda: victim.open("a")),
            error_of(lambda: os.truncate(victim, 0)),
            error_of(victim.unlink),
            error_of(lambda: victim.rename(open_folder / "elsewhere")),
        ]

    refusals = confined.value(attempt, landlock.FILES)
    assert all(refusal is not None for refusal in refusals)
    assert victim.read_text() == "precious"


def test_attributes_of_own_files_outside_cannot_be_changed(confined, open_folder):
    victim = open_folder / "victim"
    victim.touch()
    os.chown(victim, confined.user, -1)
    before = victim.stat()

    def attempt():
        return [error_of(lambda: victim.chmod(0)), error_of(lambda: os.utime(victim, (1, 1)))]

    assert confined.value(attempt, mounts.READ_ONLY) == ["EROFS", "EROFS"]
    assert victim.stat() == before


def test_the_scratch_folder_is_the_working_folder_and_starts_empty(confined):
    (confined.policy.scratch / "left by the host").touch()

    def attempt():
        return [os.getcwd(), os.listdir(".")]

    expected = [str(confined.policy.scratch), []]
    assert confined.value(attempt, mounts.SCRATCH) == expected


def test_files_and_folders_in_scratch_are_made_read_renamed_and_removed(confined):
    def attempt():
        folder = confined.policy.scratch / "a" / "b"
        folder.mkdir(parents=True)
        (folder / "file").write_text("text")
        (folder / "file").rename(confined.policy.scratch / "moved")
        text = Path("moved").read_text()
        Path("moved").unlink()
        folder.rmdir()
        return [text, os.listdir(".")]

    assert confined.value(attempt) == ["text", ["a"]]


def test_what_is_written_to_scratch_does_not_reach_the_host_folder(confined):
    confined.value(lambda: Path("file").write_text("text"), mounts.SCRATCH)
    assert list(confined.policy.scratch.iterdir()) == []


def test_all_files_in_scratch_together_are_bounded(confined):
    def fill():
        written = 0
        for index in range(1000):
            try:
                written += Path(str(index)).write_bytes(b"x" * 65536)
            except OSError as error:
                return [written, errno.errorcode[error.errno]]
        return [written, None]

    written, refusal = confined.value(fill, mounts.SCRATCH, scratch_bytes=1 << 20)
    assert refusal == "ENOSPC"
    assert (1 << 20) - 2 * 65536 <= written <= 1 << 20


def test_the_number_of_files_in_scratch_is_bounded(confined):
    def fill():
        for index in range(2 * mounts.MAX_FILES):
            if (refusal := error_of(Path(str(index)).touch)) is not None:
                return [index, refusal]
        return [index, None]

    count, refusal = confined.value(fill, mounts.SCRATCH)
    assert refusal == "ENOSPC"
    assert count < mounts.MAX_FILES


def test_one_file_is_bounded(confined):
    def fill():
        with open("large", "wb", buffering=0) as file:
            return [file.write(b"x" * 200_000), error_of(lambda: file.write(b"x"))]

    assert confined.value(fill, "file size limit", file_bytes=100_000) == [100_000, "EFBIG"]


def test_the_null_device_can_be_written(confined):
    assert confined.value(lambda: Path(os.devnull).write_text("x"), landlock.FILES) == 1


def test_a_file_outside_what_is_readable_cannot_be_read(confined, open_folder):
    secret = open_folder / "secret"
    secret.write_text("seed")

    def attempt():
        return [error_of(secret.read_text), error_of(lambda: os.listdir(open_folder))]

    assert confined.value(attempt, landlock.FILES) == ["EACCES", "EACCES"]


def test_a_file_or_folder_named_readable_can_be_read_and_not_written(confined, open_folder):
    gift = open_folder / "gift"
    gift.write_text("data")
    gift.chmod(0o666)

    def attempt():
        return [gift.read_text(), error_of(lambda: gift.write_text("other"))]

    for path in (gift, open_folder):
        text, refusal = confined.value(
            attempt, landlock.FILES, readable=(*confined.policy.readable, path)
        )
        assert text == "data"
        assert refusal is not None


def test_a_private_file_cannot_be_read_although_root_may_search_everywhere(confined, open_folder):
    secret = open_folder / "secret"
    secret.touch(mode=0o600)
    assert confined.value(partial(error_of, secret.read_text), landlock.FILES) == "EACCES"


def test_root_without_rules_keeps_no_right_to_read_everything(confined, refuse, open_folder):
    if confined.user != 0:
        pytest.skip("needs root")
    refuse("landlock_create_ruleset")
    secret = open_folder / "secret"
    secret.touch(mode=0o600)
    attempt = partial(error_of, secret.read_text)
    assert confined.value(attempt, privileges.CAPABILITIES, privileges.USER_ID) == "EACCES"


def test_the_evaluators_own_sources_cannot_be_read(confined):
    sources = [*PACKAGE.glob("*.py"), *PACKAGE.glob("evaluation/**/*.py")]
    assert len(sources) > 10

    def attempt():
        return [str(s) for s in sources if error_of(lambda s=s: s.read_bytes()) is None]

    assert confined.value(attempt, landlock.FILES) == []


def test_a_module_that_was_not_imported_before_can_be_imported(confined):
    if confined.user != os.geteuid():
        pytest.skip("needs an interpreter that the user may read")

    def attempt():
        # One of the standard library, one of the installed packages
        return [importlib.import_module(name).__name__ for name in ("colorsys", "mpmath")]

    changes = {"memory_bytes": 1 << 30}
    assert confined.value(attempt, landlock.FILES, **changes) == ["colorsys", "mpmath"]
