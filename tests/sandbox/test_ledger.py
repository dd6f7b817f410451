"""How far a batch has got, as its process notes it and the judge reads it."""

from __future__ import annotations

import torch

from kernel_smith.evaluation.sandbox.ledger import Ledger


def ledger(calls: int, results: int) -> Ledger:
    return Ledger(torch.zeros(calls, results, dtype=torch.int64))


def test_calls_are_there_once_they_were_entered() -> None:
    own = ledger(3, 1)
    assert own.entered(3) == []
    own.enter(0, 4096)
    own.enter(1, [[8192, (1, 2)]])
    assert own.entered(3) == [[4096], [8192]]
    assert own.entered(1) == [[4096]]


def test_a_call_counts_when_all_of_its_results_are_there_and_those_before_it() -> None:
    own = ledger(3, 2)
    own.enter(0, [[4096, ()], [8192, ()]])
    own.enter(1, [[4096, ()]])
    own.enter(2, [[4096, ()], [8192, ()]])
    assert own.entered(3) == [[4096, 8192]]


def test_a_result_without_elements_has_no_address_and_is_there_all_the_same() -> None:
    own = ledger(2, 1)
    own.enter(0, 0)
    own.enter(1, [[0, ()]])
    assert len(own.entered(2)) == 2


def test_results_that_nobody_expects_have_no_cells() -> None:
    own = ledger(2, 1)
    own.enter(0, [[4096, ()], [8192, ()]])
    assert own.entered(2) == [[4096]]


def test_it_is_cleared_for_another_batch() -> None:
    own = ledger(2, 1)
    own.enter(0, 4096)
    own.clear()
    assert own.entered(2) == []
