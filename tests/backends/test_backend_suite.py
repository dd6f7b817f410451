"""The suite that authors of backends are asked to pass, on the backend with the longest way.

What it asks of `cpp` is a part of the adversarial tests; `tests/gpu` runs it on a GPU.
"""

from __future__ import annotations

import pytest
from backend_programs import programs

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines import LocalEngine
from kernel_smith.records.prose import render
from kernel_smith.testing import backend_suite
from kernel_smith.testing.backend_suite import CASES, check_backend


def test_maca_passes_the_suite_and_every_record_says_conformance(
    borrowing: type[LocalEngine], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backend_suite, "LocalEngine", borrowing)
    # The kernel that hangs computes for eleven times as long: what the first calls may take.
    limits = backend_suite._OPTIONS.limits.model_copy(update={"call_seconds": 0.5})
    impatient = backend_suite._OPTIONS.model_copy(update={"limits": limits})
    monkeypatch.setattr(backend_suite, "_OPTIONS", impatient)
    shown = check_backend("maca", programs("maca"))
    assert [each.case for each in shown] == list(CASES)
    failed = {each.case: (each.end, each.evaluation.message) for each in shown if not each.passed}
    assert failed == {}
    assert all(each.evaluation.conformance for each in shown)
    assert "maca hardware has not seen it" in render(shown[0].evaluation)


def test_a_program_of_every_case_is_asked_for() -> None:
    wanted = {case: "" for case in CASES if case not in ("decoy", "hangs")}
    with pytest.raises(BadInput, match="no program for: decoy, hangs"):
        check_backend("cpp", wanted)
