"""What tests of seeds share."""

from __future__ import annotations

import gc
import importlib
from collections.abc import Iterator

import pytest
from interpreted import Interpreter


@pytest.fixture(scope="module")
def compiler() -> None:
    """torch's compiler, loaded in this process.

    Seeds search for garbage again and again, which takes long if they have to look at all of it.
    """
    importlib.import_module("kernel_smith.proposers.seed.inside.build")
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def interpreter() -> Iterator[Interpreter]:
    """Runs scripts whose Triton kernels are interpreted."""
    made = Interpreter()
    yield made
    made.close()
