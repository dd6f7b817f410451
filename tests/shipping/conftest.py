"""What the tests of shipped kernels share: a kernel for `RMSNorm`, compiled once."""

from collections.abc import Iterator

import pytest
import torch
from shipping_samples import NORM_KERNEL, WIDTH, RMSNorm, replacement_of

from kernel_smith.shipping.runtime.replacement import Replacement


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("KERNEL_SMITH_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("shipped")))
        yield


@pytest.fixture(scope="session")
def norm_kernel() -> Replacement:
    """For rows of 8 and of 16."""
    calls = [(torch.randn(8, WIDTH),), (torch.randn(16, WIDTH),)]
    return replacement_of(RMSNorm(), calls, NORM_KERNEL)
