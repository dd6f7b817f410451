"""An evaluation in sentences, for people and for models. The words come from the record alone."""

from __future__ import annotations

from kernel_smith.records.counts import counted
from kernel_smith.records.device_prose import (
    render_compiled,
    render_kernels,
    render_nsight,
    render_roofline,
    render_telemetry,
    render_traced,
)
from kernel_smith.records.durations import seconds
from kernel_smith.records.evaluation import (
    Accuracy,
    BaselineSpeedup,
    BaselineTiming,
    Beside,
    Evaluation,
    Interval,
    KernelShare,
    Timing,
    WorkloadTiming,
)
from kernel_smith.records.verdict import MEANINGS, Stage

_LOG_LINES = 40
_SMALLEST_SHARE = 0.005
_GRAPH = "graph"
_MADE_UP = "MADE UP by a simulated device: nothing was compiled, run or measured."


def headline(evaluation: Evaluation) -> str:
    """The verdict in a line."""
    return (_MADE_UP if evaluation.made_up else _verdict(evaluation)).partition("\n")[0]


def render(evaluation: Evaluation, other: str = "the other program") -> str:
    """The whole story: verdict first, then the evidence. `other`: what it was timed beside."""
    parts = [_verdict(evaluation)]
    if evaluation.made_up:
        parts.insert(0, _MADE_UP)
    if evaluation.findings:
        lines = [f"  line {f.line}: {f.reason.value}: {f.message}" for f in evaluation.findings]
        parts.append("Screen:\n" + "\n".join(lines))
    if evaluation.accuracy is not None:
        parts.append(_accuracy(evaluation.accuracy))
    if evaluation.timing is not None:
        parts.append(_timing(evaluation.timing, on_device=evaluation.device is not None))
    if evaluation.beside is not None:
        parts.append(_beside(evaluation.beside, other))
    parts += _device(evaluation)
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
    if evaluation.stage is Stage.OK and evaluation.untimed:
        return f"ok: correct, {_where_untimed(evaluation)}. Nothing was timed."
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


def _where_untimed(evaluation: Evaluation) -> str:
    place = "as interpreted on the CPU" if evaluation.interpreted else "on an NVIDIA GPU"
    if not evaluation.conformance:
        return place
    return f"{place}, which is conformance: {evaluation.backend} hardware has not seen it"


def spoken(baseline: str) -> str:
    """Return what people call a baseline."""
    return {"compile": "torch.compile", "graph": "eager as a CUDA graph"}.get(baseline, baseline)


def describe_speedup(speedup: Interval, baseline: str) -> str:
    """`1.52x the speed of eager (95%: 1.49 to 1.55)`, and whether that is any different."""
    shown = _ratio(speedup, f"the speed of {spoken(baseline)} ")
    return shown if speedup.decided else f"{shown}, no difference shown"


def describe_shown(against: BaselineSpeedup) -> str:
    """The speedup over one baseline, and whether it says that the candidate is faster."""
    shown = _ratio(against.speedup, f"the speed of {spoken(against.baseline)} ")
    return f"{shown}: {'faster' if against.speedup.low > 1 else 'faster is not shown'}"


def _ratio(interval: Interval, of_what: str = "") -> str:
    """`1.52x (95%: 1.49 to 1.55)`."""
    return (
        f"{_digits(interval.value)}x {of_what}"
        f"(95%: {_digits(interval.low)} to {_digits(interval.high)})"
    )


def _digits(ratio: float) -> str:
    """Three digits, trailing zeros included: 1.20, 0.988, 12.3."""
    return f"{ratio:#.3g}".removesuffix(".")


def _accuracy(accuracy: Accuracy) -> str:
    lines = [f"Accuracy: {_errors(accuracy)}."]
    total = sum(b.elements for b in accuracy.histogram)
    if total:
        bins = []
        lower = 0.0
        for item in accuracy.histogram:
            if item.elements:
                bound = f"up to {item.up_to:g}" if item.up_to is not None else f"over {lower:g}"
                bins.append(f"{bound}: {item.elements / total:.3%}")
            lower = item.up_to or lower
        lines.append("  elements by their share of the allowed error: " + ", ".join(bins))
    if accuracy.deterministic is not None:
        repeat = "the same bits" if accuracy.deterministic else "close, but other bits"
        lines.append(f"  a repeated call gave {repeat}")
    return "\n".join(lines)


def _errors(accuracy: Accuracy) -> str:
    if accuracy.allowed_error == 0:
        return "results have to be equal, no error is allowed"
    got = "not finite" if accuracy.candidate_error is None else f"{accuracy.candidate_error:.2g}"
    return (
        f"largest error {got} of the output's scale; allowed {accuracy.allowed_error:.2g}; "
        f"the reference's own {accuracy.reference_error:.2g}"
    )


def _timing(timing: Timing, *, on_device: bool) -> str:
    how = "ratio of candidate and baseline in alternating batches"
    if on_device:
        how = "cold cache, batches alternate with eager's; other baselines are compared through it"
    lines = [f"Timing (judge's clock, {how}):"]
    for workload in timing.workloads:
        lines += _workload(workload, on_device=on_device)
    if len(timing.workloads) > 1:
        for overall in timing.speedups:
            shown = describe_speedup(overall.speedup, overall.baseline)
            lines.append(f"  geometric mean: {shown}")
    return "\n".join(lines)


def _workload(workload: WorkloadTiming, *, on_device: bool) -> list[str]:
    own = workload.candidate
    ways = {"replay": ", replayed as a CUDA graph", "plain": ", plain calls with their launches"}
    way = ways[workload.way] if on_device else ""
    lines = [
        f"  {workload.workload}: {seconds(own.p50)} per call (P99 {seconds(own.p99)}){way}, "
        f"{counted(workload.rounds, 'round')}, {counted(workload.calls, 'checked call')}"
    ]
    if workload.plain_p50 is not None:
        lines.append(f"    {_launching(own.p50, workload.plain_p50)}")
    lines += [f"    {_baseline(item)}" for item in workload.baselines]
    return lines


def _launching(replayed: float, plain: float) -> str:
    """What a caller pays who does not capture a graph."""
    added = plain - replayed
    cost = f", of which {seconds(added)} for launching" if added > 0 else ""
    return f"a plain call takes {seconds(plain)}{cost}"


def _baseline(item: BaselineTiming) -> str:
    shown = (
        f"{describe_speedup(item.speedup, item.baseline)}; {spoken(item.baseline)} takes "
        f"{seconds(item.seconds.p50)} (P99 {seconds(item.seconds.p99)})"
    )
    if item.plain_speedup is not None:
        # Nobody launches a graph's kernels one by one: it stays what plain calls are held against.
        calls = "plain calls against it" if item.baseline == _GRAPH else "plain calls"
        shown += f"; {calls}: {_ratio(item.plain_speedup)}"
    return shown


def _beside(beside: Beside, other: str) -> str:
    """How it compares with the other candidate."""
    if beside.gain is None:
        why = f"{beside.reason.value}: {beside.message}" if beside.reason else "it was not timed"
        return f"Not compared with {other}: {why}"
    lines = [f"Side by side, in the same rounds: {describe_speedup(beside.gain, other)}."]
    if len(beside.workloads) > 1:
        lines += [f"  {each.workload}: {_ratio(each.gain)}" for each in beside.workloads]
    return "\n".join(lines)


def _device(evaluation: Evaluation) -> list[str]:
    """What bounds the kernels on the GPU, what ran there, and how the GPU was."""
    parts = []
    if evaluation.ceilings is not None:
        parts.append(render_roofline(evaluation.rooflines, evaluation.ceilings))
    parts.append(render_kernels(evaluation.device_kernels))
    if not evaluation.device_kernels:
        parts.append(render_compiled(evaluation.compiled, evaluation.device))
    parts.append(render_nsight(evaluation.nsight))
    parts.append(render_traced(evaluation.traced))
    if evaluation.telemetry is not None:
        parts.append(render_telemetry(evaluation.telemetry))
    return [part for part in parts if part]


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
