"""An evaluation in sentences, for people and for models. The words come from the record alone."""

from __future__ import annotations

from kernel_smith.records.evaluation import (
    Accuracy,
    Evaluation,
    Interval,
    KernelShare,
    Timing,
    WorkloadTiming,
)
from kernel_smith.records.verdict import MEANINGS, Stage

_LOG_LINES = 40
_SMALLEST_SHARE = 0.005


def render(evaluation: Evaluation) -> str:
    """The whole story: verdict first, then the evidence."""
    parts = [_verdict(evaluation)]
    if evaluation.findings:
        lines = [f"  line {f.line}: {f.reason.value}: {f.message}" for f in evaluation.findings]
        parts.append("Screen:\n" + "\n".join(lines))
    if evaluation.accuracy is not None:
        parts.append(_accuracy(evaluation.accuracy))
    if evaluation.timing is not None:
        parts.append(_timing(evaluation.timing))
    if evaluation.kernels:
        parts.append(_kernels(evaluation.kernels))
    if evaluation.log:
        lines = evaluation.log.splitlines()[-_LOG_LINES:]
        parts.append("Log:\n" + "\n".join(f"  {line}" for line in lines))
    if evaluation.notes:
        parts.append("Notes:\n" + "\n".join(f"  {note}" for note in evaluation.notes))
    if evaluation.confinement.missing:
        lines = [f"  {line}" for line in evaluation.confinement.missing]
        parts.append("Not enforced on this machine:\n" + "\n".join(lines))
    return "\n".join(parts)


def _verdict(evaluation: Evaluation) -> str:
    if evaluation.stage is Stage.OK and evaluation.interpreted:
        return "ok: correct, as interpreted on the CPU. Nothing was timed."
    if evaluation.stage is Stage.OK:
        assert evaluation.timing is not None
        speedup = evaluation.timing.speedup
        baseline = evaluation.timing.speedups[0].baseline
        return f"ok: correct, {describe_speedup(speedup, baseline)}."
    assert evaluation.reason is not None
    meaning = MEANINGS[evaluation.reason]
    detail = f"\n  {evaluation.message}" if evaluation.message else ""
    return (
        f"{evaluation.stage.value}: {evaluation.reason.value}: {meaning.sentence}.{detail}"
        f"\n  Advice: {meaning.advice}"
    )


def describe_speedup(speedup: Interval, baseline: str) -> str:
    """`1.52x the speed of eager (95%: 1.49 to 1.55)`, and whether that is any different."""
    shown = (
        f"{_digits(speedup.value)}x the speed of {baseline} "
        f"(95%: {_digits(speedup.low)} to {_digits(speedup.high)})"
    )
    same = speedup.low <= 1 <= speedup.high
    return f"{shown}, no difference shown" if same else shown


def _digits(ratio: float) -> str:
    """Three digits, trailing zeros included: 1.20, 0.988, 12.3."""
    return f"{ratio:#.3g}".removesuffix(".")


def _accuracy(accuracy: Accuracy) -> str:
    got = "not finite" if accuracy.candidate_error is None else f"{accuracy.candidate_error:.2g}"
    lines = [
        f"Accuracy: largest error {got} of the output's scale; allowed "
        f"{accuracy.allowed_error:.2g}; the reference's own {accuracy.reference_error:.2g}."
    ]
    total = sum(b.elements for b in accuracy.histogram)
    if total:
        bins = []
        lower = 0.0
        for item in accuracy.histogram:
            if item.elements:
                bound = f"<= {item.up_to:g}" if item.up_to is not None else f"> {lower:g}"
                bins.append(f"{bound}: {item.elements / total:.3%}")
            lower = item.up_to or lower
        lines.append("  error over allowed error: " + ", ".join(bins))
    if accuracy.deterministic is not None:
        repeat = "the same bits" if accuracy.deterministic else "close, but other bits"
        lines.append(f"  a repeated call gave {repeat}")
    return "\n".join(lines)


def _timing(timing: Timing) -> str:
    lines = ["Timing (judge's clock, ratio of candidate and baseline in alternating batches):"]
    for workload in timing.workloads:
        lines += _workload(workload)
    if len(timing.workloads) > 1:
        for overall in timing.speedups:
            shown = describe_speedup(overall.speedup, overall.baseline)
            lines.append(f"  geometric mean: {shown}")
    return "\n".join(lines)


def _workload(workload: WorkloadTiming) -> list[str]:
    own = workload.candidate
    lines = [
        f"  {workload.workload}: {seconds(own.p50)} per call (P99 {seconds(own.p99)}), "
        f"{workload.rounds} rounds, {workload.calls} checked calls"
    ]
    for item in workload.baselines:
        lines.append(
            f"    {describe_speedup(item.speedup, item.baseline)}; {item.baseline} takes "
            f"{seconds(item.seconds.p50)} (P99 {seconds(item.seconds.p99)})"
        )
    return lines


def _kernels(kernels: tuple[KernelShare, ...]) -> str:
    authored = sum(k.share for k in kernels if k.origin == "authored")
    library = sum(k.share for k in kernels if k.origin == "library")
    lines = [f"Time by origin of the code: {authored:.0%} authored, {library:.0%} library."]
    lines += [
        f"  {k.share:6.1%}  {k.origin:<11}  {k.module}"
        for k in kernels
        if k.share >= _SMALLEST_SHARE
    ]
    return "\n".join(lines)


def seconds(value: float) -> str:
    """A duration with three digits and a fitting unit."""
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if value >= size:
            return f"{value / size:.3g} {unit}"
    return f"{value * 1e9:.3g} ns"
