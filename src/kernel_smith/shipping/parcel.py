"""What a maintainer merges: a package, its tests, a benchmark, and the text of a pull request."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import kernel_smith
from kernel_smith.errors import BadInput, writing
from kernel_smith.records import Evaluation, WorkloadTiming
from kernel_smith.records.prose import render
from kernel_smith.shipping.found import Optimized
from kernel_smith.store import StepFacts

_TEMPLATES = Path(__file__).parent / "templates"
PULL_REQUEST = "PULL_REQUEST.md"


def pack(found: Optimized, lineage: Sequence[StepFacts], folder: Path, name: str) -> list[Path]:
    """Write everything into a folder, and say what was written. Raises `BadInput`."""
    if not name.isidentifier():
        raise BadInput(
            f"{name!r} is no name that Python can import", hint="name it: --name fast_norm"
        )
    tests = folder / "tests"
    files = {
        tests / f"test_{name}.py": _template("test_kernel", name),
        folder / f"benchmark_{name}.py": _template("benchmark", name),
        folder / PULL_REQUEST: pull_request(found, lineage, name),
    }
    package = found.save(folder / name)
    with writing(folder, "choose another folder"):
        tests.mkdir(exist_ok=True)
        for path, text in files.items():
            path.write_text(text, "utf-8")
    return [package, *files]


def _template(which: str, name: str) -> str:
    return (_TEMPLATES / f"{which}.txt").read_text("utf-8").replace("@NAME@", name)


_OUR_PARTS = (
    "`runtime/` and `inline/` are parts of kernel-smith (MIT licence); the reference is the task's "
    "own text"
)


def pull_request(
    found: Optimized,
    lineage: Sequence[StepFacts],
    name: str,
    commands: Sequence[str] | None = None,
    licence: str = _OUR_PARTS,
) -> str:
    """Return the text that a maintainer reads first: what changes, what was measured, where it is
    from.

    `commands` try it out; by default those of a package. `licence` says whose parts are in it.
    """
    evaluation = found.evaluation
    tried = commands or [f"python -m pytest tests/test_{name}.py", f"python benchmark_{name}.py"]
    title = f"# A faster kernel for `{found.task.name}`"
    parts = [
        title,
        _summary(found, name),
        "## Measured\n\n" + _table(evaluation) + "\n\n" + _conditions(evaluation),
        "## Verified\n\n" + _verified(found),
        "## Try it\n\n" + _indented("\n".join(tried)),
        "## Provenance\n\n" + _provenance(found, lineage, licence),
        "## The judge's report\n\n" + _indented(render(evaluation)),
    ]
    return "\n\n".join(parts) + "\n"


def _summary(found: Optimized, name: str) -> str:
    text = (
        f"`{name}` answers the calls of `{found.task.name}` that were verified with a "
        f"{found.candidate.backend} kernel, and all others with the reference."
    )
    if found.confirmed:
        return text
    return (
        f"{text}\n\n**Not confirmed**: that it is faster than eager PyTorch and torch.compile was "
        "not shown by a measuring that did not choose it."
    )


def _table(evaluation: Evaluation) -> str:
    if evaluation.timing is None:
        return "Nothing was timed."
    rows = ["| workload | baseline | before | after | speedup (95%) |", "|---|---|---|---|---|"]
    rows += [row for timed in evaluation.timing.workloads for row in _rows(timed)]
    return "\n".join(rows)


def _rows(timed: WorkloadTiming) -> list[str]:
    return [
        f"| {timed.workload} | {one.baseline} | {1e6 * one.seconds.p50:.1f} us "
        f"| {1e6 * timed.candidate.p50:.1f} us | {one.speedup.value:.2f}x "
        f"({one.speedup.low:.2f} to {one.speedup.high:.2f}) |"
        for one in timed.baselines
    ]


def _conditions(evaluation: Evaluation) -> str:
    machine = evaluation.environment
    gpu = f"{evaluation.device.name}, " if evaluation.device else ""
    return (
        f"On {gpu}{machine.processor} ({machine.kernel}), torch {machine.torch}, "
        f"{machine.compiler}; medians of calls with inputs that the kernel had not seen."
    )


def _verified(found: Optimized) -> str:
    workloads = "\n".join(
        f"- `{one.name}`: {one.params or 'as get_inputs makes them'}"
        for one in found.task.workloads
    )
    accuracy = found.evaluation.accuracy
    if accuracy is None:
        return workloads
    variants = ", ".join(variant.value for variant in found.task.variants)
    return (
        f"{workloads}\n\nAgainst an fp64 oracle the largest error was "
        f"{accuracy.candidate_error:.2g} of the output's scale (the reference's: "
        f"{accuracy.reference_error:.2g}; allowed: {accuracy.allowed_error:.2g}), on secret inputs "
        f"and their variants: {variants}."
    )


def _provenance(found: Optimized, lineage: Sequence[StepFacts], licence: str) -> str:
    steps = "\n".join(
        f"  {number}. {step.proposer}: {step.summary or 'a first program'} ({step.candidate[:12]})"
        for number, step in enumerate(lineage, 1)
    )
    return (
        f"- kernel-smith {kernel_smith.__version__}, run `{found.run}` ({found.why_ended})\n"
        f"- task `{found.task.content_hash[:16]}`, kernel `{found.candidate.content_hash[:16]}`, "
        f"precision {found.task.precision.value}\n"
        + (f"- how the kernel came about:\n{steps}\n" if steps else "")
        + f"- {licence}"
    )


def _indented(text: str) -> str:
    return "\n".join(f"    {line}" if line else "" for line in text.splitlines())
