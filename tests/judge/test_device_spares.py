"""Processes that wait for the next candidate: as few as possible are started."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import pytest

from kernel_smith.evaluation.judge.platform.spares import Spares
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.records import Limits

LIMITS = Limits()
OTHERS = Limits(call_seconds=99)


class Witness:
    """Takes the part of the processes, and notes which processes were started and ended."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.started: list[tuple[Path, ...]] = []
        self.ended: list[object] = []

    def new_folder(self, name: str) -> Path:
        path = self._folder / f"{name}-{len(list(self._folder.iterdir()))}-{len(self.started)}"
        path.mkdir()
        return path

    def start(self, place: Any, limits: Limits, *, readable: tuple[Path, ...], gpu: bool) -> object:
        assert gpu
        self.started.append(readable)
        return object()

    def end(self, child: object) -> None:
        assert child not in self.ended
        self.ended.append(child)


@pytest.fixture
def processes(tmp_path: Path) -> Witness:
    return Witness(tmp_path)


@pytest.fixture
def spares(processes: Witness) -> Spares:
    return Spares(cast(ProcessPool, processes), cast(CoreSet, None))


def test_each_process_reads_a_folder_of_its_own(processes: Witness, spares: Spares) -> None:
    first, second = spares.take(LIMITS), spares.take(LIMITS)
    assert processes.started == [(first.objects,), (second.objects,)]
    assert first.objects != second.objects


def test_what_was_prepared_is_taken(processes: Witness, spares: Spares) -> None:
    spares.prepare(LIMITS, 2)
    spares.prepare(LIMITS, 2)
    assert len(processes.started) == 2
    assert spares.take(LIMITS).child is not spares.take(LIMITS).child
    assert len(processes.started) == 2


def test_one_that_was_not_needed_serves_the_next_and_sees_nothing_of_the_last(
    processes: Witness, spares: Spares
) -> None:
    used, unused = spares.take(LIMITS), spares.take(LIMITS)
    (unused.objects / "kernels-0.so").write_text("compiled")
    spares.forget(used)
    spares.take_back(unused)
    spares.prepare(LIMITS, 2)
    assert len(processes.started) == 3
    assert spares.take(LIMITS) == unused
    assert list(unused.objects.iterdir()) == []
    assert not used.objects.exists()
    assert processes.ended == []


def test_no_more_wait_than_a_candidate_needs(processes: Witness, spares: Spares) -> None:
    unused = spares.take(LIMITS)
    spares.prepare(LIMITS, 2)
    spares.take_back(unused)
    assert processes.ended == [unused.child]
    assert not unused.objects.exists()


def test_other_limits_are_another_process(processes: Witness, spares: Spares) -> None:
    spares.prepare(LIMITS, 2)
    assert spares.take(OTHERS).limits == OTHERS
    assert len(processes.started) == 3
    spares.prepare(OTHERS, 2)
    assert len(processes.ended) == 2
    assert len(processes.started) == 5


def test_at_the_end_all_that_wait_are_ended(processes: Witness, spares: Spares) -> None:
    spares.prepare(LIMITS, 2)
    taken = spares.take(LIMITS)
    spares.close()
    assert len(processes.ended) == 1
    assert taken.child not in processes.ended
    spares.close()
    assert len(processes.ended) == 1
