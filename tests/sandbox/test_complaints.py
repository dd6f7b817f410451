"""What is said of an error, whatever it is."""

from __future__ import annotations

from kernel_smith.evaluation.sandbox.complaints import describe_error


def test_descriptions_of_errors_are_bounded() -> None:
    described = describe_error(ValueError("x" * 1_000_000), "go")
    assert all(len(value) < 10_000 for value in described.values())


def test_an_error_that_cannot_be_printed_is_described_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no words")

    described = describe_error(Mute(), "go")
    assert "Mute" in described["message"]
