"""A service as a process that is ended, killed and started again: all jobs end, none twice."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
import typer
from served_process import LANES
from serving import LONG, TASK, body, http_client, serving, until
from typer.testing import CliRunner

from kernel_smith.cli import serve
from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.evaluation.engines.remote import RemoteEngine
from kernel_smith.evaluation.service import needs
from kernel_smith.evaluation.service.book import JobBook
from kernel_smith.records import Candidate, JobState

PROGRAM = Path(__file__).with_name("served_process.py")


class Process:
    def __init__(self, folder: Path, *, drain_seconds: float = 20.0, port: int = 0) -> None:
        self._address = folder / "address"
        self._address.unlink(missing_ok=True)
        self._popen = subprocess.Popen(
            [sys.executable, str(PROGRAM), str(folder), str(drain_seconds), str(port)],
            stdout=subprocess.PIPE,
            text=True,
        )

    def url(self) -> str:
        until(lambda: self._address.exists() or self._popen.poll() is not None)
        return self._address.read_text()

    def send(self, number: int) -> None:
        self._popen.send_signal(number)

    def end(self) -> tuple[int, str]:
        """Its exit code, and what it said."""
        said, _ = self._popen.communicate(timeout=LONG)
        return self._popen.returncode, said

    def kill(self) -> None:
        """If it has not ended."""
        if self._popen.poll() is None:
            self._popen.kill()
            self._popen.communicate()


@contextmanager
def _process(
    folder: Path, *, drain_seconds: float = 20.0, port: int = 0
) -> Iterator[tuple[Process, str]]:
    process = Process(folder, drain_seconds=drain_seconds, port=port)
    try:
        yield process, process.url()
    finally:
        process.kill()


def _evaluated(folder: Path) -> Counter[str]:
    return Counter((folder / "evaluated").read_text().splitlines())


def _wait_for_states(url: str, state: str, count: int) -> None:
    with http_client(base_url=url) as http:
        until(lambda: len(http.get(f"/v1/jobs?state={state}").json()["jobs"]) >= count)


@pytest.mark.slow
def test_jobs_survive_signals_and_none_is_answered_twice(tmp_path: Path) -> None:
    """One client, that never notices; a service that is killed, ended, and started again."""
    jobs = 100
    with _process(tmp_path) as (process, url):
        port = httpx.URL(url).port
        assert port is not None
        remote = RemoteEngine(url, patience=LONG)
        futures = [remote.submit(TASK, Candidate(source=f"# {n}")) for n in range(jobs)]
        _wait_for_states(url, "done", 10)
        process.send(signal.SIGKILL)
        assert process.end()[0] == -signal.SIGKILL
    with _process(tmp_path, port=port) as (process, url):
        _wait_for_states(url, "done", 30)
        process.send(signal.SIGTERM)
        code, said = process.end()
        assert (code, said) == (0, "given back: 0\n")
    with _process(tmp_path, port=port), remote:
        answers = [future.result(LONG) for future in futures]
    expected = [Candidate(source=f"# {n}").content_hash for n in range(jobs)]
    assert [answer.candidate_hash for answer in answers] == expected
    evaluated = _evaluated(tmp_path)
    assert len(evaluated) == jobs
    # Only what was under way when it was killed begins anew.
    assert evaluated.total() <= jobs + LANES
    with JobBook.open(tmp_path / "jobs.sqlite") as book:
        assert book.counts()[JobState.DONE] == jobs
        assert sum(book.counts().values()) == jobs


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_ends_it_well_and_keeps_what_waits(tmp_path: Path, number: int) -> None:
    with _process(tmp_path) as (process, url):
        requests = [body(n) for n in range(200)]
        with (
            http_client(base_url=url) as http,
            http.stream("GET", "/v1/events?after=0") as stream,
        ):
            http.post("/v1/jobs/batch", json={"requests": requests})
            lines = stream.iter_lines()
            next(lines)
            process.send(number)
            for _ in lines:  # the stream ends by itself
                pass
        assert process.end() == (0, "given back: 0\n")
    with JobBook.open(tmp_path / "jobs.sqlite") as book:
        counts = book.counts()
    assert counts[JobState.RUNNING] == 0
    assert counts[JobState.WAITING] + counts[JobState.DONE] == 200
    assert counts[JobState.DONE] == _evaluated(tmp_path).total()


def test_a_second_owner_of_the_book_is_refused(tmp_path: Path) -> None:
    with serving(tmp_path), pytest.raises(BadInput, match=str(os.getpid())):
        JobBook.open(tmp_path / "jobs.sqlite")


def test_a_port_that_is_taken_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    with serving(tmp_path) as served:
        port = httpx.URL(served.url).port
        with (
            pytest.raises(BadInput, match=f"port {port}") as refused,
            serving(tmp_path / "other", port=port),
        ):
            pass
    assert "--port" in refused.value.hint


def _run(*words: str) -> str:
    result = CliRunner().invoke(serve.app, list(words))
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    assert result.exit_code == 0, result.output
    return result.stdout


def test_the_command_makes_lists_and_removes_tokens(tmp_path: Path) -> None:
    file = str(tmp_path / "tokens")
    secret = _run("tokens", "add", file, "ann", "--priority", "3").strip()
    assert len(secret) >= 43
    client, following = _run("tokens", "list", file).splitlines()
    assert client == "ann  priority 3" and f"serve --clients {file}" in following
    assert '"priority": 3' in _run("tokens", "list", file, "--json")
    _run("tokens", "remove", file, "ann")
    assert _run("tokens", "list", file).startswith("no clients yet\nnext: kernel-smith serve")


def test_the_command_refuses_strangers_before_it_makes_anything(tmp_path: Path) -> None:
    store = tmp_path / "jobs.sqlite"
    with pytest.raises(BadInput, match=r"0\.0\.0\.0"):
        _run("--host", "0.0.0.0", "--store", str(store))
    assert not store.exists()


def test_packages_that_are_absent_are_named_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(needs, "find_spec", lambda name: None if name == "uvicorn" else object())
    with pytest.raises(MissingPrerequisite, match="uvicorn") as missing:
        _run("--port", "0")
    assert missing.value.hint == "pip install 'kernel-smith[serve]'"


def test_the_command_serves_until_it_is_ended(tmp_path: Path) -> None:
    program = "from kernel_smith.cli.serve import app; app()"
    command = [sys.executable, "-u", "-c", program, "--port", "0"]
    command += ["--store", str(tmp_path / "jobs.sqlite")]
    with (
        subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process,
        http_client() as http,
    ):
        try:
            assert process.stdout is not None
            first, then = process.stdout.readline(), process.stdout.readline()
            url = first.split()[2].rstrip(",")
            assert f"curl {url}/v1/capacity" in then
            assert http.get(f"{url}/v1/capacity").json()["lanes"] == 1
            process.send_signal(signal.SIGTERM)
            assert process.wait(LONG) == 0
        finally:
            process.kill()


def test_the_command_is_a_group_that_the_command_line_can_take(tmp_path: Path) -> None:
    whole = typer.Typer()
    whole.add_typer(serve.app, name="serve")
    result = CliRunner().invoke(whole, ["serve", "tokens", "add", str(tmp_path / "t"), "ann"])
    assert result.exit_code == 0, result.output
