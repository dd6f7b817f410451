"""What several tests of the judge's parts share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from kernel_smith.evaluation.judge.processes.pool import ProcessPool


@pytest.fixture(scope="session")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ProcessPool]:
    """The judge's processes, without a judge's: to start them takes seconds."""
    folder = tmp_path_factory.mktemp("processes")
    folder.chmod(0o755)
    processes = ProcessPool(folder)
    yield processes
    processes.close()
