"""`kernel-smith knowledge`: lists, guides, and what helps with a task."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Cli = Callable[..., Any]


def test_guides_are_listed_and_read(cli: Cli) -> None:
    listed = cli("knowledge")
    assert "cpp_aarch64" in listed.out
    assert "next: kernel-smith knowledge cpp" in listed.out
    topics = [each["topic"] for each in cli("knowledge", "--json").json["topics"]]
    for topic in topics:
        read = cli("knowledge", topic)
        assert (read.code, read.out[:3]) == (0, "## ")
    assert "Measured: how kernels got faster" in cli("knowledge", "triton_h200").out


def test_a_task_gets_what_concerns_it(cli: Cli) -> None:
    about = ("knowledge", "--task", "gelu_tanh", "--hardware", "aarch64")
    done = cli(*about)
    assert "## Elementwise work" in done.out and "polynomial exp" in done.out
    assert "## Products and convolutions" not in done.out
    assert "next: kernel-smith optimize gelu_tanh --backend cpp" in done.out
    titles = [section["title"] for section in cli(*about, "--json").json["sections"]]
    assert "Elementwise work" in titles
    assert cli("knowledge", "--task", "gelu_tanh").code == 0, "about this machine"


def test_mistakes_are_named(cli: Cli) -> None:
    cli("knowledge", "fortran").complains(2, "no guide is called 'fortran'", "cpp")
    cli("knowledge", "cpp", "--task", "gelu_tanh").complains(2, "together", "name one")
    cli("knowledge", "--task", "nothing_such").complains(2, "nothing_such")
    cli("knowledge", "--task", "gelu_tanh", "--backend", "basic").complains(2, "basic")
