"""What is readable by default: enough to compute, nothing of the evaluator's own."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy
import pytest

import kernel_smith
from kernel_smith.evaluation.sandbox.confine import default_readable, installation_of, readable

PACKAGE = Path(kernel_smith.__file__).parent


def covered(path, granted):
    return any(parent in granted for parent in (path.resolve(), *path.resolve().parents))


@pytest.fixture
def packages(tmp_path, monkeypatch):
    """An import folder that holds us, a path file, a neighbour and links."""
    folder = tmp_path / "lib" / "python3" / "site-packages"
    for name in ("kernel_smith/tasks", "kernel_smith-1.dist-info", "neighbour", "with space"):
        (folder / name).mkdir(parents=True)
    (folder / "module.py").touch()
    (folder / "sources.pth").write_text(str(tmp_path / "sources"))
    (tmp_path / "sources").mkdir()
    (folder / "loop").symlink_to(tmp_path)
    (folder / "alias").symlink_to(folder / "kernel_smith")
    monkeypatch.syspath_prepend(folder)
    return folder


def test_interpreter_standard_library_and_packages_are_readable():
    granted = default_readable()
    for file in (sys.executable, json.__file__, numpy.__file__, pytest.__file__):
        assert covered(Path(file), granted), file


def test_nothing_readable_holds_the_evaluators_source():
    granted = default_readable()
    assert not covered(PACKAGE / "__init__.py", granted)
    assert not any(path == PACKAGE or PACKAGE in path.parents for path in granted)


def test_neither_home_nor_root_nor_temporary_folders_are_readable():
    forbidden = {Path("/"), Path.home(), Path("/tmp"), Path("/etc"), Path("/dev"), Path("/sys")}
    assert forbidden.isdisjoint(default_readable())


def test_shared_memory_from_a_device_is_not_readable():
    assert not covered(Path("/dev/zero"), default_readable())


def test_an_installed_copy_of_us_is_left_out_and_its_neighbours_are_listed(packages):
    granted = default_readable()
    for name in ("neighbour", "with space", "module.py"):
        assert packages / name in granted
    for name in ("kernel_smith/tasks", "kernel_smith-1.dist-info", "alias", "loop/sources"):
        assert not covered(packages / name, granted), name


def test_a_folder_that_a_path_file_points_to_is_left_out(packages, tmp_path):
    assert not covered(tmp_path / "sources", default_readable())


def test_names_in_a_split_import_folder_may_be_listed_and_none_above_it(packages):
    listable = set(readable.listable(default_readable()))
    assert packages in listable
    assert listable.isdisjoint(packages.parents)


def test_no_entry_lies_within_another():
    granted = set(default_readable())
    assert not any(granted.intersection(path.parents) for path in granted)


def test_a_program_in_a_folder_of_its_own_brings_its_installation(tmp_path):
    prefix = tmp_path / "opt"
    for folder in ("bin", "lib", "secrets"):
        (prefix / folder).mkdir(parents=True)
    program = prefix / "bin" / "compiler"
    program.touch()
    link = tmp_path / "compiler"
    link.symlink_to(program)
    expected = {prefix / "bin", prefix / "lib"}
    assert set(installation_of(program)) == set(installation_of(link)) == expected
    assert installation_of(Path("/usr/bin/env")) == ()


def test_an_installation_that_holds_our_package_does_not_give_it_away(tmp_path, monkeypatch):
    own = tmp_path / "lib" / "kernel_smith"
    (tmp_path / "lib" / "gcc").mkdir(parents=True)
    own.mkdir()
    monkeypatch.setattr(readable, "_hidden", lambda: iter([own]))
    assert installation_of(tmp_path / "bin" / "g++") == (tmp_path / "lib" / "gcc",)
