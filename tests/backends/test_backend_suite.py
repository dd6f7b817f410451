"""Every backend of ours passes the suite that authors of backends are asked to pass."""

from __future__ import annotations

import pytest
from backend_programs import programs

from kernel_smith.errors import BadInput
from kernel_smith.testing.backend_suite import CASES, check_backend


@pytest.mark.parametrize("dialect", ["cpp"])
def test_backend_passes_the_suite(dialect: str) -> None:
    shown = check_backend(dialect, programs(dialect))
    assert [each.case for each in shown] == list(CASES)
    failed = {each.case: (each.end, each.evaluation.message) for each in shown if not each.passed}
    assert failed == {}


def test_a_program_of_every_case_is_asked_for() -> None:
    with pytest.raises(BadInput, match="no program for: decoy, hangs"):
        wanted = {case: "" for case in CASES if case not in ("decoy", "hangs")}
        check_backend("cpp", wanted)
