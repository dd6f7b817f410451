"""Whose processes a GPU's platform starts, takes back and ends, and whom it blames for memory."""

from __future__ import annotations

import ast
from contextlib import nullcontext
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from kernel_smith.evaluation.backends import find_backend
from kernel_smith.evaluation.judge.compiling.source import Maker
from kernel_smith.evaluation.judge.inputs.footprint import Footprint
from kernel_smith.evaluation.judge.platform import device_state
from kernel_smith.evaluation.judge.platform.device import DeviceFull, DevicePlatform
from kernel_smith.evaluation.judge.platform.device_participant import DeviceParticipant
from kernel_smith.evaluation.judge.processes.pool import CoreSet, ProcessPool
from kernel_smith.records import MEANINGS, Candidate, Environment, Evaluation, Limits, Reason

LIMITS = Limits()
NOTHING = Footprint(0, 0, 0, 0)
GIB = 1 << 30
VERDICT = Evaluation(
    task="add",
    task_hash="0" * 64,
    candidate_hash="1" * 64,
    backend="triton",
    stage=MEANINGS[Reason.MEMORY_LIMIT].stage,
    reason=Reason.MEMORY_LIMIT,
    message="it takes too much",
    environment=Environment(**dict.fromkeys(Environment.model_fields, "x")),
    created_at=datetime(2026, 1, 1, tzinfo=UTC),
)


class Processes:
    """Starts children that do nothing."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.started: list[Any] = []
        self.ended: list[Any] = []

    def new_folder(self, name: str) -> Path:
        path = self._folder / f"{name}-{len(self.started)}"
        path.mkdir()
        return path

    def start(self, place: Any, limits: Limits, *, readable: tuple[Path, ...], gpu: bool) -> Any:
        self.started.append(SimpleNamespace(readable=readable, provide=None))
        return self.started[-1]

    def end(self, child: Any) -> None:
        assert child not in self.ended
        self.ended.append(child)


class Participant:
    """As far as it matters to whoever starts and ends it."""

    def __init__(self, name: str, child: Any) -> None:
        self.name, self.child = name, child
        self.ended, self.is_unused = False, True

    def close(self) -> None:
        self.ended, self.is_unused = True, False


@pytest.fixture
def processes(tmp_path: Path) -> Processes:
    return Processes(tmp_path)


@pytest.fixture
def platform(processes: Processes, monkeypatch: pytest.MonkeyPatch) -> DevicePlatform:
    monkeypatch.setattr(device_state, "quiet", lambda: None)
    monkeypatch.setattr(device_state, "give_memory_back", lambda: None)
    monkeypatch.setattr(device_state, "turns", lambda: SimpleNamespace(stepping_out=nullcontext))
    monkeypatch.setattr(
        DevicePlatform, "participant", lambda self, name, child, limits: Participant(name, child)
    )
    return DevicePlatform(cast(ProcessPool, processes), cast(CoreSet, None))


def compiler_of(platform: DevicePlatform, backend: str = "cuda") -> Maker:
    candidate = Candidate(backend=backend, source="")
    return platform.compiler(candidate, find_backend(backend), ast.parse(""), LIMITS)


def launch(platform: DevicePlatform, objects: Path) -> DeviceParticipant:
    return platform.launch("candidate", objects, lambda need: {}, LIMITS, NOTHING)


def test_a_candidate_gets_the_processes_that_waited_for_it(
    platform: DevicePlatform, processes: Processes
) -> None:
    compiler = compiler_of(platform)
    armed, disarmed = (launch(platform, o) for o in (compiler.armed, compiler.disarmed))
    assert [armed.child, disarmed.child] == processes.started
    assert armed.child.readable == (compiler.armed,)  # type: ignore[attr-defined]
    fresh = launch(platform, compiler.armed)
    assert fresh.child not in (armed.child, disarmed.child)
    assert fresh.child.readable == (compiler.armed,)  # type: ignore[attr-defined]


def test_triton_needs_no_second_process_unless_it_is_asked_for(
    platform: DevicePlatform, processes: Processes
) -> None:
    compiler = compiler_of(platform, "triton")
    armed = launch(platform, compiler.armed)
    assert processes.started == [armed.child]
    disarmed = launch(platform, compiler.disarmed)
    assert disarmed.child.readable == (compiler.disarmed,)  # type: ignore[attr-defined]
    for used in (armed, disarmed):
        used.is_unused = False  # type: ignore[misc]
    platform.retire([armed, disarmed], compiler)
    assert processes.ended == [armed.child, disarmed.child]
    assert not compiler.armed.exists() and not compiler.disarmed.exists()


def test_what_was_not_used_serves_the_next_candidate(
    platform: DevicePlatform, processes: Processes
) -> None:
    first = compiler_of(platform)
    armed = launch(platform, first.armed)
    armed.is_unused = False  # type: ignore[misc]
    (first.disarmed / "object-0.so").touch()
    platform.retire([armed], first)
    assert processes.ended == [armed.child]
    assert not first.armed.exists() and not list(first.disarmed.iterdir())
    second = compiler_of(platform)
    assert second.armed == first.disarmed
    assert len(processes.started) == 3


def test_a_process_that_was_launched_and_not_asked_is_kept_as_well(
    platform: DevicePlatform, processes: Processes
) -> None:
    first = compiler_of(platform)
    both = [launch(platform, objects) for objects in (first.armed, first.disarmed)]
    both[0].is_unused = False  # type: ignore[misc]
    platform.retire(both, first)
    assert processes.ended == [both[0].child]
    again = launch(platform, compiler_of(platform).armed)
    assert again.child is both[1].child


def test_nothing_is_left_when_it_closes(platform: DevicePlatform, processes: Processes) -> None:
    compiler = compiler_of(platform)
    used = launch(platform, compiler.armed)
    used.is_unused = False  # type: ignore[misc]
    platform.retire([used], compiler)
    platform.look_ahead(find_backend("triton"), LIMITS)
    platform.close()
    assert len(processes.ended) == len(processes.started)


def test_a_candidate_that_never_got_to_a_compiler_is_retired(platform: DevicePlatform) -> None:
    platform.retire([], None)


@pytest.mark.parametrize(("freed", "by_candidate"), [(12, True), (1, False)])
def test_who_held_the_memory_is_to_blame_that_it_ran_out(
    platform: DevicePlatform, monkeypatch: pytest.MonkeyPatch, freed: int, by_candidate: bool
) -> None:
    free = [2 * GIB]
    monkeypatch.setattr(device_state, "memory", lambda: (free[0], 24 * GIB))

    def fail() -> Evaluation:
        raise torch.OutOfMemoryError("out of memory")

    def end() -> None:
        free[0] += freed * GIB

    with pytest.raises(DeviceFull, match="out of memory") as caught:
        platform.guard(fail, end)
    assert caught.value.by_candidate is by_candidate


@pytest.mark.parametrize(("free", "verdict"), [(20, VERDICT), (1, None)])
def test_a_candidate_without_memory_is_told_only_where_there_is_some(
    platform: DevicePlatform, monkeypatch: pytest.MonkeyPatch, free: int, verdict: Any
) -> None:
    monkeypatch.setattr(device_state, "memory", lambda: (free * GIB, 24 * GIB))
    with pytest.raises(DeviceFull) as caught:
        platform.guard(lambda: VERDICT, lambda: None)
    assert caught.value.verdict == verdict


def test_other_verdicts_are_passed_on(platform: DevicePlatform) -> None:
    other = VERDICT.model_copy(update={"reason": Reason.WRONG_VALUES})
    assert platform.guard(lambda: other, lambda: None) is other


class Replaying:
    """Notes what it is asked for, and refuses to be captured if told so."""

    def __init__(self, refusal: str | None) -> None:
        self.asked: list[str] = []
        self._refusal = refusal

    def bind(self, sets: list[Any]) -> None:
        self.asked.append(f"bind {len(sets)}")

    def capture(self) -> str | None:
        self.asked.append("capture")
        return self._refusal

    def replay(self, *, timed: bool) -> None:
        self.asked.append("replay" if timed else "replay with events")

    def run(self) -> Any:
        self.asked.append("run")
        return SimpleNamespace(windows=SimpleNamespace(run_wall=5.0), calls=2)

    def device_seconds(self) -> float:
        return 0.25


@pytest.mark.parametrize(
    ("refusal", "how", "seconds"),
    [(None, "replay with events", 0.25), ("it synchronises", "run", (5.0 - 1.0) / 2)],
)
def test_a_glance_is_one_cold_batch(
    platform: DevicePlatform,
    monkeypatch: pytest.MonkeyPatch,
    refusal: str | None,
    how: str,
    seconds: float,
) -> None:
    process = Replaying(refusal)
    cold = SimpleNamespace(make_cold=lambda: process.asked.append("cold"))
    monkeypatch.setattr(device_state, "quiet", lambda: cold)
    sets = cast(Any, [None, None])
    assert platform.glance(cast(DeviceParticipant, process), sets, 1.0) == seconds
    assert process.asked == ["bind 2", "capture", "cold", how]


@pytest.mark.parametrize("is_large", [True, False])
def test_the_right_answer_is_there_before_a_process_needs_memory_for_its_own(
    platform: DevicePlatform, is_large: bool
) -> None:
    events: list[str] = []
    inputs, foreseen, results = object(), object(), object()

    def agrees(got: object, asked: object, answer: object) -> bool:
        assert (got, asked, answer) == (results, inputs, foreseen)
        events.append("compare")
        return False

    def note(event: str, value: object = None) -> Any:
        def noted(*arguments: object, **more: object) -> object:
            events.append(event)
            return value

        return noted

    author = SimpleNamespace(
        draw=lambda: inputs, foresee=note("right answer", foreseen), agrees=agrees
    )
    pool = SimpleNamespace(author=author, is_large=is_large)
    bench = SimpleNamespace(
        enter=lambda *_: SimpleNamespace(pool=pool),
        leave=note("leave"),
        reference=SimpleNamespace(make_room=note("make room")),
    )
    process = SimpleNamespace(
        bind=note("bind"),
        run=note("run"),
        capture=note("capture"),
        rewrite=note("rewrite"),
        replay=note("replay"),
        outputs=lambda call: results,
        unbind=lambda: None,
    )
    arguments = cast(Any, (bench, process, None))
    assert platform.is_right_without_kernels(*arguments) is False
    room = ["make room"] if is_large else []
    computing = ["bind", "run", "capture", "rewrite", "replay", "compare", "leave"]
    assert events == ["right answer", *room, *computing]
