"""What libraries are kept by, of the machine that they were compiled on."""

import platform
from pathlib import Path

import pytest

from kernel_smith.inline import processor

X86 = "model name\t: {}\nflags\t\t: fpu sse2 avx2\ncpu MHz\t\t: {}\n"
ARM = "BogoMIPS\t: {}\nFeatures\t: fp asimd {}\nCPU implementer\t: 0x41\nCPU part\t: 0xd0c\n"


def told(path: Path, text: str, monkeypatch: pytest.MonkeyPatch) -> str:
    path.write_text(text, encoding="utf-8")
    monkeypatch.setattr(processor, "CPUINFO", path)
    return processor.processor.__wrapped__()


@pytest.mark.parametrize(
    ("one", "same", "other"),
    [
        (X86.format("Xeon", 2500), X86.format("Xeon", 3100), X86.format("EPYC", 2500)),
        (ARM.format(50, ""), ARM.format(125, ""), ARM.format(50, "sve")),
    ],
    ids=["x86-64", "aarch64"],
)
def test_processors_are_told_apart_by_what_they_can_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, one: str, same: str, other: str
) -> None:
    """Linux names an Arm processor in other rows, and its model in none."""
    first = told(tmp_path / "cpuinfo", one + "\n" + one, monkeypatch)
    assert told(tmp_path / "cpuinfo", same, monkeypatch) == first
    assert told(tmp_path / "cpuinfo", other, monkeypatch) != first


def test_where_linux_does_not_say_the_machine_is_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "CPUINFO", tmp_path / "nothing")
    assert processor.processor.__wrapped__() == platform.machine()
