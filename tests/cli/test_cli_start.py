"""How the command line starts, and what it says about itself."""

from __future__ import annotations

import contextlib
import errno
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import typer

import kernel_smith
from kernel_smith.cli.output import print_error, print_next, written
from kernel_smith.errors import InternalError

Cli = Callable[..., Any]

HEAVY = ("torch", "numpy", "rich.table")


@pytest.mark.parametrize(
    "arguments",
    [
        ["--help"],
        ["evaluate", "--help"],
        pytest.param(["tasks", "--help"], marks=pytest.mark.sweep),
        pytest.param(["--version"], marks=pytest.mark.sweep),
    ],
    ids=" ".join,
)
def test_help_is_answered_without_importing_torch(arguments: list[str]) -> None:
    probe = f"""
import atexit, sys
atexit.register(lambda: print("HEAVY", [m for m in {HEAVY!r} if m in sys.modules]))
from kernel_smith.cli.main import main
sys.argv = ["kernel-smith", *{arguments!r}]
main()
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "HEAVY []" in done.stdout
    assert done.stderr == ""


def test_a_defect_is_told_as_one_with_all_that_a_report_needs(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ZeroDivisionError("nobody foresaw this")

    monkeypatch.setattr("kernel_smith.cli.tasks.builtin_tasks", fail)
    done = cli("tasks", "list")
    assert done.code == 4
    assert "Traceback" in done.err
    assert "error: internal: ZeroDivisionError: nobody foresaw this" in done.err
    assert "please report it" in done.err


def test_what_may_be_no_defect_says_what_else_it_may_be(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise InternalError("the judge died", hint="look at the task")

    monkeypatch.setattr("kernel_smith.cli.tasks.builtin_tasks", fail)
    cli("tasks", "list").complains(4, "error: internal: the judge died", "hint: look at the task")


def test_a_name_that_no_file_can_have_is_bad_input(cli: Cli) -> None:
    done = cli("data", "build", "--output", "x" * 300)
    done.complains(2, "longer than a file's name can be", "choose a shorter name")


@pytest.mark.parametrize("number", [errno.EACCES, errno.EPERM, errno.EROFS])
def test_what_one_may_not_do_is_bad_input(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(number, os.strerror(number), "theirs/file")

    monkeypatch.setattr("kernel_smith.cli.tasks.builtin_tasks", refuse)
    cli("tasks", "list").complains(2, f"theirs/file: {os.strerror(number)}", "permission")


@pytest.mark.parametrize("folder", ["", ".", "/", "below"])
@pytest.mark.parametrize(
    "arguments",
    [
        ["serve", "tokens", "add", "{}", "ann"],
        ["serve", "tokens", "remove", "{}", "ann"],
        ["serve", "--port", "0", "--store={}"],
        ["optimize", "row_softmax", "--evaluations", "1", "--store={}"],
    ],
    ids=["add a client", "remove a client", "jobs", "runs"],
)
def test_a_folder_in_place_of_a_file_is_bad_input(
    cli: Cli, arguments: list[str], folder: str, tmp_path: Path
) -> None:
    (tmp_path / "below").mkdir()
    done = cli(*(each.format(folder) for each in arguments))
    done.complains(2, "a folder, expected a file", "name a file, such as ")
    assert [path.name for path in tmp_path.iterdir() if path.name != "cache"] == ["below"]


@pytest.mark.parametrize("host", ["x" * 300, "a b"])
def test_a_host_that_is_none_is_bad_input(cli: Cli, host: str) -> None:
    assert cli("serve", "tokens", "add", "clients", "ann").code == 0
    done = cli("serve", "--clients", "clients", "--host", host, "--port", "0")
    done.complains(2, f"cannot listen on {host}", "--host")


def test_control_characters_of_a_name_do_not_reach_the_terminal(cli: Cli) -> None:
    done = cli("optimize", "row_softmax", "--start", "\x1b[2Jgone\r\x9b")
    done.complains(2, r"\x1b[2Jgone\x0d\x9b: cannot be read")
    assert not set(done.out + done.err) & {"\x1b", "\r", "\x9b"}


def test_what_is_there_and_is_no_file_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with contextlib.closing(os.fdopen(reading, encoding="utf-8")) as reader:
        with written(pipe) as write:
            write("what was found")
        assert reader.read() == "what was found"
    assert pipe.is_fifo()
    assert [*tmp_path.iterdir()] == [pipe]


@pytest.mark.parametrize("json", [[], ["--json"]])
def test_output_that_finds_no_room_is_an_error_in_words(
    program: list[str], json: list[str]
) -> None:
    with open("/dev/full", "w") as full:
        command = [*program, "tasks", "show", "row_softmax", *json]
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 3, done.stderr
    assert done.stderr.splitlines() == [
        "error: no space left to write to",
        "hint: make room, then run the command again",
    ]


def test_who_reads_no_more_is_not_told_of_a_defect(program: list[str]) -> None:
    for arguments in (["knowledge"], ["tasks", "list", "--json"]):
        process = subprocess.Popen(
            [*program, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        assert process.stdout is not None and process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == "", arguments
        assert process.wait() in (0, 1)
        process.stderr.close()


@pytest.mark.parametrize(
    ("closed", "arguments", "code"),
    [
        (">&-", ["tasks", "list", "--json"], 0),
        ("<&- >&- 2>&-", ["tasks", "list", "--json"], 0),
        ("<&- >&- 2>&-", ["runs", "list"], 2),
        pytest.param(">&-", ["runs", "list"], 2, marks=pytest.mark.sweep),
    ],
)
def test_closed_standard_streams_lead_nowhere(
    program: list[str], closed: str, arguments: list[str], code: int, tmp_path: Path
) -> None:
    command = f"{shlex.join([*program, *arguments])} {closed}"
    done = subprocess.run(command, shell=True, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr


def test_ctrl_c_during_start_up_shows_no_traceback() -> None:
    probe = """
import sys


class Interrupting:
    def find_spec(self, name, *rest):
        if name == "typer":
            raise KeyboardInterrupt


sys.meta_path.insert(0, Interrupting())
from kernel_smith.cli.entry import main

main()
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True)
    assert done.returncode == 130
    assert done.stderr == ""


def test_the_version_is_the_packages(cli: Cli) -> None:
    assert cli("--version").out == f"kernel-smith {kernel_smith.__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "what", "hint"),
    [
        (["optimise"], "No such command 'optimise'", "kernel-smith --help"),
        (["evaluate"], "Missing argument 'TASK'", "kernel-smith evaluate --help"),
        (["evaluate", "a", "--half-width"], "--half-width", "kernel-smith --help"),
        (
            ["optimize", "a", "--evaluations", "0"],
            "'--evaluations'",
            "kernel-smith optimize --help",
        ),
        (["runs", "show", "a", "b", "c"], "c", "kernel-smith runs show --help"),
    ],
)
def test_bad_usage_ends_with_two_and_the_command_that_helps(
    cli: Cli, arguments: list[str], what: str, hint: str
) -> None:
    done = cli(*arguments)
    assert done.code == 2
    first, second = done.err.splitlines()
    assert first.startswith("error: ") and what in first
    assert second == f"hint: {hint}"


@pytest.mark.parametrize("stop", [typer.Abort, KeyboardInterrupt, lambda: typer.Exit(130)])
def test_however_the_framework_tells_of_ctrl_c_it_is_an_interrupt(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, stop: Callable[[], BaseException]
) -> None:
    def interrupted(name: str) -> None:
        raise stop()

    monkeypatch.setattr("kernel_smith.cli.tasks.find_task", interrupted)
    done = cli("tasks", "show", "row_softmax")
    assert done.code == 130
    assert done.err.startswith("error: interrupted")


@pytest.mark.parametrize("arguments", [[], ["runs"]])
def test_a_group_without_a_command_shows_what_there_is(cli: Cli, arguments: list[str]) -> None:
    done = cli(*arguments)
    assert done.code == 2
    assert "Commands:" in done.out + done.err
    assert "error: " not in done.err


@pytest.mark.parametrize("text", ["[red]x[/]", "a[0]", r"C:\[x]", "[/]", "\\[bold]", "{x} [[y]]"])
def test_brackets_in_messages_are_printed_as_they_are(
    capsys: pytest.CaptureFixture[str], text: str
) -> None:
    print_error(text, text)
    assert capsys.readouterr().err == f"error: {text}\nhint: {text}\n"
    print_next(text, text)
    assert capsys.readouterr().out == f"next: {text}  # {text}\n"


def test_two_processes_write_the_same_file_one_after_the_other(tmp_path: Path) -> None:
    """The last one wins, and what is there is complete."""
    path = tmp_path / "report.txt"
    writing = f"""
import sys
from pathlib import Path
from kernel_smith.cli.output import written
with written(Path({str(path)!r})) as write:
    write(sys.argv[1])
    print("begun", flush=True)
    sys.stdin.readline()
"""
    with contextlib.ExitStack() as stack:
        both = [
            stack.enter_context(
                subprocess.Popen(
                    [sys.executable, "-c", writing, name],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
            for name in ("first", "second")
        ]
        for process in both:
            assert process.stdout is not None and process.stdout.readline() == "begun\n"
        for process in both:
            process.communicate("\n")
    assert [process.returncode for process in both] == [0, 0]
    assert path.read_text() == "second"
    assert list(tmp_path.iterdir()) == [path]
