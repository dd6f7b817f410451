"""The judge's hold on a process that may say anything, or nothing."""

from __future__ import annotations

import contextlib
import os
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from kernel_smith.evaluation.judge.platform.participant import Participant
from kernel_smith.evaluation.judge.processes.child import Child, ChildFailed, Interrupted
from kernel_smith.evaluation.judge.rejection import Rejected, printable
from kernel_smith.evaluation.sandbox import wire
from kernel_smith.evaluation.sandbox.triton_tools import COMPILED, COMPILING
from kernel_smith.evaluation.sandbox.wire import Channel, WireError
from kernel_smith.records import Limits, Reason

pytestmark = pytest.mark.timing


class Puppet:
    """A sleeping process and the far ends of its sockets, which the test holds."""

    def __init__(self, scratch: Path) -> None:
        self.process = subprocess.Popen(["sleep", "600"])
        near, self.channel = Channel.pair()
        near_status, self.status = Channel.pair()
        self.log = os.memfd_create("log")
        self.child = Child(near, near_status, os.dup(self.log), scratch)
        self.status.send({"child": self.process.pid})
        self.channel.send({"enforced": ["a wall"], "missing": ["a moat"]})

    def say(self, *messages: dict[str, Any]) -> None:
        for message in messages:
            self.channel.send(message)

    def die(self, **report: Any) -> None:
        """End like a process whose monitor reports it."""
        self.process.kill()
        self.process.wait()
        self.status.send(report)
        self.channel.close()

    def close(self) -> None:
        self.status.close()
        self.child.bury()
        self.process.kill()
        self.process.wait()
        self.channel.close()
        os.close(self.log)


@pytest.fixture
def puppet(tmp_path: Path) -> Iterator[Puppet]:
    puppet = Puppet(tmp_path / "scratch")
    yield puppet
    puppet.close()


def failure(action: Callable[[], Any]) -> ChildFailed:
    with pytest.raises(ChildFailed) as caught:
        action()
    return caught.value


def test_a_ready_child_tells_what_confines_it(puppet: Puppet) -> None:
    puppet.child.ready()
    assert puppet.child.pid == puppet.process.pid
    assert puppet.child.confinement.enforced == ("a wall",)
    assert puppet.child.confinement.missing == ("a moat",)
    assert puppet.child.alive()
    deadline = time.monotonic() + 60
    while not (used := puppet.child.cpu_seconds()) and time.monotonic() < deadline:
        time.sleep(0.01)  # it may not have had its turn yet
    assert used > 0


def test_a_child_is_moved_to_other_cores_while_it_lives(puppet: Puppet) -> None:
    first = min(os.sched_getaffinity(0))
    puppet.child.move_to({first})  # not yet known: nobody to move
    puppet.child.ready()
    puppet.child.move_to({first})
    assert os.sched_getaffinity(puppet.process.pid) == {first}
    puppet.die(exited=0)
    puppet.child.move_to({first})  # gone: whoever asks it next will learn


def test_a_process_that_is_gone_before_it_was_met_is_nobodys_verdict_and_can_be_buried(
    puppet: Puppet,
) -> None:
    puppet.die(exited=-9)
    with pytest.raises(Interrupted, match="did not start"):
        puppet.child.ready()
    puppet.child.kill()
    puppet.child.bury()


def test_a_request_gets_its_answer(puppet: Puppet) -> None:
    puppet.child.post("go", calls=3)
    assert puppet.channel.receive(5) == {"op": "go", "calls": 3}
    puppet.say({"done": "it"})
    assert puppet.child.answer("go", 5) == {"done": "it"}


def test_silence_is_a_timeout_and_ends_the_process(puppet: Puppet) -> None:
    os.write(puppet.log, b"last words\n")
    failed = failure(lambda: puppet.child.ask("go", 0.05))
    assert failed.kind == "timeout"
    assert "0.05 s" in failed.message
    assert failed.log == "last words"
    assert puppet.process.wait(60) < 0


def test_requests_for_objects_are_served_while_waiting(puppet: Puppet) -> None:
    wanted: list[Any] = []

    def provide(need: dict[str, Any]) -> dict[str, Any]:
        wanted.append(need)
        return {"path": "/objects/0.so"}

    puppet.child.provide = provide
    puppet.say({"need": {"source": "a"}}, {"need": {"source": "b"}}, {"ok": True})
    assert puppet.child.ask("load", 5) == {"ok": True}
    assert wanted == [{"source": "a"}, {"source": "b"}]
    assert puppet.channel.receive(5)["op"] == "load"
    assert [puppet.channel.receive(5) for _ in wanted] == [{"path": "/objects/0.so"}] * 2


def test_a_flood_of_requests_cannot_stretch_the_timeout(puppet: Puppet) -> None:
    puppet.child.provide = lambda need: {"log": "no"}
    stop = threading.Event()

    def flood() -> None:
        with contextlib.suppress(WireError):
            while not stop.is_set():
                puppet.channel.send({"need": {}})
                puppet.channel.receive(5)

    puppet.child.post("load")
    thread = threading.Thread(target=flood)
    thread.start()
    try:
        assert failure(lambda: puppet.child.answer("load", 0.2)).kind == "timeout"
    finally:
        stop.set()
        thread.join()


def test_the_time_in_which_it_compiles_by_itself_does_not_count(puppet: Puppet) -> None:
    puppet.child.provide, puppet.child.compile_seconds = lambda need: {}, 60.0

    def compile_twice() -> None:
        for _ in range(2):
            puppet.say({"need": COMPILING})
            time.sleep(0.4)
            puppet.say({"need": {"source": "asked for meanwhile"}}, {"need": COMPILED})
        puppet.say({"ok": True})

    puppet.child.post("go")
    thread = threading.Thread(target=compile_twice)
    thread.start()
    try:
        assert puppet.child.answer("go", 0.3) == {"ok": True}
    finally:
        thread.join()


def test_who_says_that_it_compiles_has_as_long_as_that_may_take(puppet: Puppet) -> None:
    puppet.child.provide, puppet.child.compile_seconds = lambda need: {}, 0.2
    puppet.say({"need": COMPILING})
    assert failure(lambda: puppet.child.ask("go", 0.1)).kind == "timeout"


def test_a_child_that_dies_while_it_is_served_is_a_failed_child(puppet: Puppet) -> None:
    def provide(need: dict[str, Any]) -> dict[str, Any]:
        puppet.die(exited=3, exceeded=None)
        return {"path": "/objects/0.so"}

    puppet.child.provide = provide
    puppet.say({"need": {}})
    failed = failure(lambda: puppet.child.ask("load", 5))
    assert (failed.kind, failed.message) == ("died", "exited with status 3 during load")


@pytest.mark.parametrize(
    ("report", "kind", "message"),
    [
        ({"exited": 1, "exceeded": None}, "died", "exited with status 1 during go"),
        ({"exited": -11, "exceeded": None}, "died", "killed by SIGSEGV during go"),
        ({"exited": -9, "exceeded": "used 5 GiB"}, "memory", "used 5 GiB"),
        ({"exited": -63, "exceeded": None}, "died", "63"),
    ],
)
def test_a_death_is_told_in_the_monitors_words(
    puppet: Puppet, report: dict[str, Any], kind: str, message: str
) -> None:
    puppet.child.ready()
    puppet.child.post("go")
    puppet.die(**report)
    failed = failure(lambda: puppet.child.answer("go", 5))
    assert failed.kind == kind
    assert message in failed.message


@pytest.mark.parametrize("still_ending", [False, True])
def test_a_monitor_that_is_gone_is_nobodys_verdict(puppet: Puppet, still_ending: bool) -> None:
    """Its process ends with it, and has closed its files some time before it is gone."""
    puppet.child.ready()
    if not still_ending:
        puppet.process.kill()
        puppet.process.wait()
    puppet.status.close()
    puppet.channel.close()
    with pytest.raises(Interrupted):
        puppet.child.ask("go", 5)


def test_a_monitor_that_fails_says_why_and_is_nobodys_verdict(puppet: Puppet) -> None:
    puppet.child.ready()
    puppet.status.send({"failed": "OSError: no more files"})
    puppet.channel.close()
    with pytest.raises(Interrupted, match=r"failed \(OSError: no more files\) during go"):
        puppet.child.ask("go", 5)


def test_a_trusted_process_that_fails_is_nobodys_verdict(puppet: Puppet) -> None:
    puppet.child.trusted = True
    puppet.say({"error": {"kind": "exception", "message": "ValueError: no"}})
    with pytest.raises(Interrupted, match="ValueError: no"):
        puppet.child.ask("go", 5)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"kind": "exception", "message": "ValueError: x", "traceback": "line 3"}, "exception"),
        ({"kind": "signature", "message": "m"}, "signature"),
        ({"kind": "memory", "message": "m"}, "memory"),
        # A process may not choose a kind that blames somebody else, or none at all.
        ({"kind": "died", "message": "m"}, "exception"),
        ({"kind": ["memory"], "message": "m"}, "exception"),
        ({}, "exception"),
        ("text", "protocol"),
        (None, "protocol"),
    ],
)
def test_reports_of_errors_are_read_with_care(puppet: Puppet, error: Any, kind: str) -> None:
    puppet.say({"error": error})
    assert failure(lambda: puppet.child.ask("go", 5)).kind == kind


def test_words_of_a_process_become_fit_for_a_record(puppet: Puppet) -> None:
    nasty = "\ud800 \x1b[2J\x07 \u202e" + "x" * 100_000
    puppet.say({"error": {"kind": "exception", "message": nasty, "traceback": nasty}})
    failed = failure(lambda: puppet.child.ask("go", 5))
    rejected = Rejected.from_failure(failed, loading=False)
    for text in (rejected.message, rejected.evidence["log"]):
        text.encode()
        assert len(text) < 20_000
        assert not any(character in text for character in "\x1b\x07\u202e")


def test_printable_keeps_lines_tabs_and_other_scripts() -> None:
    text = "error:\n\tœuvre 内核 ядро\n"
    assert printable(text) == text


def test_what_is_no_message_is_a_protocol_violation(puppet: Puppet) -> None:
    puppet.child.ready()
    puppet.child.post("go")
    os.write(puppet.channel.fileno(), b"\x05\x00\x00\x00hello")
    assert failure(lambda: puppet.child.answer("go", 5)).kind == "protocol"


def test_a_process_that_hangs_up_but_lives_on_is_ended(
    puppet: Puppet, monkeypatch: pytest.MonkeyPatch
) -> None:
    puppet.child.ready()
    puppet.child.post("go")
    puppet.channel.close()
    # The monitor has nothing to report; do not wait for it.
    monkeypatch.setattr(puppet.child, "exit_report", lambda: {})
    failed = failure(lambda: puppet.child.answer("go", 5))
    assert failed.kind == "protocol"
    assert puppet.process.wait(60) < 0


def test_a_process_that_does_not_read_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wire, "_SEND_TIMEOUT", struct.pack("ll", 0, 50_000))
    puppet = Puppet(tmp_path)
    failed = failure(lambda: puppet.child.post("load", source="x" * (4 << 20)))
    assert failed.kind == "timeout"
    assert puppet.process.wait(60) < 0
    puppet.close()


def test_burying_removes_the_scratch_folder_and_every_descriptor(tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    puppet = Puppet(scratch)
    puppet.child.ready()
    puppet.close()
    assert not scratch.exists()
    assert len(os.listdir("/proc/self/fd")) == before


# ---------------------------------------------------------------- accounts of a batch


class Liar:
    """A child that answers a batch with whatever it likes."""

    def __init__(self, collected: dict[str, Any], done: str | None = None) -> None:
        self.collected = collected
        self.done = done
        self.killed = False

    def post(self, op: str, *, calls: int, nonce: str, places: bool) -> None:
        self.nonce = nonce

    def stopped(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def answer(self, op: str, timeout: float) -> dict[str, Any]:
        return {"done": self.nonce if self.done is None else self.done}

    def ask(self, op: str, timeout: float, **arguments: Any) -> dict[str, Any]:
        return self.collected

    def cpu_seconds(self) -> float:
        return time.process_time()

    def read_log(self) -> str:
        return ""

    def kill(self) -> None:
        self.killed = True


def participant(liar: Liar) -> Participant:
    return Participant("candidate", cast(Child, liar), Limits())


HONEST = {"first": {}, "odd": [], "inner": 1e-6, "count": 2}


def test_an_honest_account_is_read() -> None:
    batch = participant(Liar(HONEST)).run(2)
    assert (batch.calls, batch.odd, batch.inner_seconds) == (2, [], 1e-6)
    assert batch.windows.run_wall > 0


@pytest.mark.parametrize(
    "change",
    [
        {"count": 1},
        {"count": "many"},
        {"count": None},
        {"count": float("inf")},
        {"inner": None},
        {"inner": float("nan")},
        {"inner": float("inf")},
        {"inner": 10**400},
        {"odd": 3},
        {"odd": [1]},
        {"odd": [1, 2, 3]},
        {"odd": None},
    ],
    ids=str,
)
def test_a_forged_account_is_a_protocol_violation(change: dict[str, Any]) -> None:
    liar = Liar(HONEST | change)
    assert failure(lambda: participant(liar).run(2)).kind == "protocol"


@pytest.mark.parametrize("missing", HONEST)
def test_an_incomplete_account_is_a_protocol_violation(missing: str) -> None:
    liar = Liar({key: value for key, value in HONEST.items() if key != missing})
    assert failure(lambda: participant(liar).run(2)).kind == "protocol"


def test_an_answer_given_in_advance_is_a_protocol_violation() -> None:
    liar = Liar(HONEST, done="guessed")
    failed = failure(lambda: participant(liar).run(2))
    assert failed.kind == "protocol"
    assert liar.killed


# ---------------------------------------------------------------- names of failures


@pytest.mark.parametrize(
    ("kind", "loading", "running"),
    [
        ("exception", Reason.LOAD_EXCEPTION, Reason.EXCEPTION),
        ("signature", Reason.WRONG_SIGNATURE, Reason.WRONG_SIGNATURE),
        ("memory", Reason.MEMORY_LIMIT, Reason.MEMORY_LIMIT),
        ("timeout", Reason.LOAD_TIMEOUT, Reason.CALL_TIMEOUT),
        ("died", Reason.LOAD_CRASHED, Reason.CRASHED),
        ("protocol", Reason.PROTOCOL_VIOLATION, Reason.PROTOCOL_VIOLATION),
    ],
)
def test_every_failure_has_a_reason_when_loading_and_when_running(
    kind: Any, loading: Reason, running: Reason
) -> None:
    failed = ChildFailed(kind, "what", "log")
    assert Rejected.from_failure(failed, loading=True).reason is loading
    rejected = Rejected.from_failure(failed, loading=False)
    assert rejected.reason is running
    assert (rejected.message, rejected.evidence["log"]) == ("what", "log")
