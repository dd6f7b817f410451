"""`kernel-smith seed`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.cli import seed as command
from kernel_smith.proposers.seed import Seed
from kernel_smith.records import Task
from kernel_smith.tasks import find_task

Cli = Callable[..., Any]


WORKLOADS = find_task("embedding_bag").workloads
MADE = Seed(task="t", backend="cpp", source="# a seed", workloads=("odd",), kernels=1, torch="2")


def test_a_seed_is_written_and_the_next_command_named(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    def make_seed(task: Task, device: str, workloads: Sequence[str], *_: object) -> Seed:
        asked.extend([task.name, device, *workloads])
        return MADE

    monkeypatch.setattr(command, "make_seed", make_seed)
    done = cli("seed", "gelu_tanh", "--workload", "odd", "-o", "mine.py", "--quiet")
    assert done.code == 0, done.err
    assert done.err == ""
    assert asked == ["gelu_tanh", "cpu", "odd"]
    assert (tmp_path / "mine.py").read_text() == MADE.source
    assert "next: kernel-smith evaluate gelu_tanh mine.py --backend cpp" in done.out


def test_the_record_names_the_file(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "make_seed", lambda *arguments: MADE)
    record = cli("seed", "gelu_tanh", "--json").json
    assert record["path"] == "gelu_tanh_seed_cpp.py"
    assert (tmp_path / record["path"]).read_text() == record["source"]
    assert record["kernels"] == 1


def test_where_it_cannot_be_written_nothing_is_compiled(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "make_seed", lambda *arguments: pytest.fail("it was"))
    cli("seed", "gelu_tanh", "-o", ".").complains(2, ".: cannot be written", "-o FILE")


def test_kernels_of_our_own_can_be_asked_for(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = MADE.model_copy(update={"library_calls": ("mm",), "without_library": "# all ours"})
    monkeypatch.setattr(command, "make_seed", lambda *arguments: made)
    record = cli("seed", "gelu_tanh", "--own-kernels", "--json").json
    assert (tmp_path / record["path"]).read_text() == "# all ours"
    assert record["library_calls"] == []
    others = MADE.model_copy(update={"library_calls": ("sort",)})
    monkeypatch.setattr(command, "make_seed", lambda *arguments: others)
    said = cli("seed", "gelu_tanh", "--own-kernels")
    said.complains(2, "no kernels of ours for sort", "leave out --own-kernels")


def test_a_file_that_cannot_be_written_is_named(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command, "make_seed", lambda *arguments: MADE)
    cli("seed", "gelu_tanh", "-o", "missing/mine.py").complains(2, "missing/mine.py", "-o FILE")


@pytest.mark.slow
def test_a_task_of_library_calls_is_refused(cli: Cli, tmp_path: Path) -> None:
    """By the compiler's own process, whose words come through."""
    text = (
        "import torch\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return torch.sort(x, dim=-1).values\n"
        "def get_inputs():\n    return [torch.randn(8, 64)]\n"
    )
    (tmp_path / "sorted_rows.py").write_text(text)
    cli("seed", "sorted_rows.py", "-q").complains(2, "leaves all of it to the library")


@pytest.mark.slow
def test_a_full_device_is_missing_memory_and_no_defect(cli: Cli, tmp_path: Path) -> None:
    text = (
        "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
        "        return x + 1\n\n\ndef get_inputs():\n"
        "    raise torch.OutOfMemoryError('CUDA out of memory. Tried to allocate 6.00 GiB.')\n"
    )
    (tmp_path / "big.py").write_text(text)
    said = ("the GPU has not enough memory for workload default", "nvidia-smi")
    cli("seed", str(tmp_path / "big.py"), "-q").complains(3, *said)


def test_bad_arguments_are_refused(cli: Cli) -> None:
    cli("seed", "gelu_tanh", "--device", "tpu").complains(2, "'tpu'", "cpu or cuda")
    cli("seed", "gelu_tanh", "--workload", "huge").complains(2, "'huge'")
    cli("seed", "no_such_task").complains(2, "no_such_task")
