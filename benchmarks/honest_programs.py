"""Programs that benchmarks take for honest work: fast kernels of the tests, with their tasks."""

from __future__ import annotations

from pathlib import Path

from kernel_smith.records import Candidate, Task
from kernel_smith.tasks import find_task

_TESTS = Path(__file__).parent.parent / "tests"
_FOLDERS = {"cpp": _TESTS / "honest" / "candidates", "triton": _TESTS / "gpu" / "honest"}
_NAMES = {
    "cpp": (
        "gelu_tanh__vector_extension",
        "row_softmax__online_pairs",
        "swiglu__intrinsics",
        "layer_norm__specialised_widths",
    ),
    "triton": (
        "greedy_token__split_vocabulary",
        "add_rms_norm_llm__row_in_registers",
        "fp8_quantise_per_token__rounded_bits",
    ),
}
BACKENDS = tuple(_NAMES)


def honest_programs(backend: str) -> list[tuple[Task, Candidate]]:
    paths = [_FOLDERS[backend] / f"{name}.py" for name in _NAMES[backend]]
    return [
        (
            find_task(path.stem.partition("__")[0]),
            Candidate(source=path.read_text(), backend=backend, name=path.name),
        )
        for path in paths
    ]


def with_mark(candidate: Candidate, mark: str) -> Candidate:
    """Another program around the same kernels."""
    return candidate.model_copy(update={"source": f"{candidate.source}\n# {mark}\n"})
