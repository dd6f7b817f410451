"""What the tests of shipped kernels share: a kernel for `RMSNorm`, compiled once."""

from pathlib import Path

import pytest
import torch
from shipping_samples import NORM_KERNEL, WIDTH, RMSNorm, replacement_of

from kernel_smith.shipping.runtime.replacement import Replacement


@pytest.fixture(scope="session")
def caches(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("caches")


@pytest.fixture(autouse=True)
def own_caches(caches: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing of the user's is read or written, and every kernel is compiled once."""
    monkeypatch.setenv("KERNEL_SMITH_CACHE", str(caches / "inline"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(caches / "shipped"))


@pytest.fixture(scope="session")
def norm_kernel() -> Replacement:
    """For rows of 8 and of 16."""
    calls = [(torch.randn(8, WIDTH),), (torch.randn(16, WIDTH),)]
    return replacement_of(RMSNorm(), calls, NORM_KERNEL)
