"""Seeds of big problems on a GPU: how much memory they take, and what a full device does."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
import torch

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.proposers.seed import Seed
from kernel_smith.records import Task

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
    pytest.mark.filterwarnings("ignore"),  # the compiler warns about its own affairs
]

GIB = 1 << 30
# What the compiler times with, and what a block is compared with.
BESIDE = GIB // 2

TASK = """
import torch

TASK = {"workloads": {"one": {"rows": 16384}, "other": {"rows": 16383}}}


class Model(torch.nn.Module):
    def forward(self, x):
        return torch.nn.functional.gelu(x)


def get_inputs(rows=16384):
    return [torch.rand(rows, 16384)]
"""


@pytest.fixture
def limit_memory() -> Iterator[Callable[[float], None]]:
    """Lets this process have so many bytes of the GPU."""
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.empty_cache()
    yield lambda count: torch.cuda.set_per_process_memory_fraction(count / total)
    torch.cuda.set_per_process_memory_fraction(1.0)


def build(task: Task) -> Seed:
    """Make a seed in this process, whose memory can be watched and limited."""
    from kernel_smith.proposers.seed.inside.build import build_seed

    names = [workload.name for workload in task.workloads]
    return build_seed(task, "cuda", names, lambda what: None)


def test_inputs_and_two_results_are_all_that_is_there(write_task: Callable[..., Task]) -> None:
    torch.cuda.empty_cache()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    seed = build(write_task(TASK))
    assert seed.compared == {"one": 1.0, "other": 1.0}
    assert torch.cuda.max_memory_allocated() - before < 3 * GIB + BESIDE
    assert torch.cuda.memory_allocated() - before < BESIDE


def test_without_room_for_two_results_a_sample_is_compared(
    write_task: Callable[..., Task], limit_memory: Callable[[float], None]
) -> None:
    limit_memory(2 * GIB + BESIDE)
    seed = build(write_task(TASK))
    assert all(0 < share < 1 for share in seed.compared.values())
    assert any("of the elements were compared" in note for note in seed.notes)


def test_a_full_gpu_is_an_error_with_figures(
    write_task: Callable[..., Task], limit_memory: Callable[[float], None]
) -> None:
    limit_memory(1.5 * GIB)
    with pytest.raises(MissingPrerequisite, match="the GPU has not enough memory") as caught:
        build(write_task(TASK))
    assert "for workload one; its inputs take 1.1 GB, its result 1.1 GB" in caught.value.what
    assert torch.cuda.get_device_name() in caught.value.what
