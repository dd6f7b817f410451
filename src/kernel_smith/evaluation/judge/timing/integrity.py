"""Rules on who used the processor when, from the operating system's books.

The judge's clock sees the time between a request and its answer. Work that a candidate hides from
that window must run in another one: while the judge copies results, while it is the reference's
turn, or on cores that the reference was not given. All of it is processor time of the candidate's
process, which the operating system counts and the candidate cannot.
"""

from __future__ import annotations

from collections.abc import Sequence

from kernel_smith.evaluation.judge.platform.batch import Windows
from kernel_smith.evaluation.judge.rejection import Rejected, Suspected
from kernel_smith.evaluation.judge.timing.statistics import usual_sum
from kernel_smith.records import Reason

_TOLERATED_SHARE = 0.1  # of the candidate's own run time
_SLACK_SECONDS = 0.002  # in all: books are kept in ticks on some kernels
_SERVICE_FACTOR = 1.25
_CORE_SHARE = 0.2


def check_processor_use(
    candidate: Sequence[Windows], reference: Sequence[Windows], cores: int
) -> None:
    """Raise `Rejected` where a candidate worked outside its turn or on more than its cores.

    Processor time, not wall time: a busy machine stretches the latter for the innocent, too.
    """
    run_wall = sum(w.run_wall for w in candidate)
    run_cpu = sum(w.run_cpu for w in candidate)
    tolerated = _TOLERATED_SHARE * max(run_cpu, run_wall) + _SLACK_SECONDS
    idle, usual = (usual_sum([w.idle_cpu for w in side]) for side in (candidate, reference))
    if idle > usual + tolerated:
        raise Suspected(
            Reason.BACKGROUND_WORK,
            f"used {idle * 1e3:.1f} ms of processor time while it was not its turn "
            f"(and {run_cpu * 1e3:.1f} ms during its calls)",
        )
    served, usual = (usual_sum([w.service_cpu for w in side]) for side in (candidate, reference))
    if served > _SERVICE_FACTOR * usual + tolerated:
        raise Suspected(
            Reason.DEFERRED_WORK,
            f"used {served * 1e3:.1f} ms of processor time to hand over arguments and results; "
            f"the reference's process used {usual * 1e3:.1f} ms",
        )
    if run_cpu > run_wall * (cores + _CORE_SHARE) + _SLACK_SECONDS:
        raise Rejected(
            Reason.EXTRA_CORES,
            f"used {run_cpu / run_wall:.1f} cores' worth of processor time, {cores} were allotted",
        )


def check_rest(seconds: float) -> None:
    """Before its first timed call a process has been constructed, and waits."""
    if seconds > _SLACK_SECONDS:
        raise Suspected(
            Reason.BACKGROUND_WORK,
            f"used {seconds * 1e3:.1f} ms of processor time before it was asked for anything",
        )


def check_physics(
    seconds_per_call: float, output_bytes: int, bytes_per_second: float, doubt: float = 0.0
) -> None:
    """No kernel fills its output faster than the cores can store to their nearest cache.

    Where a busy machine leaves `doubt` about the time, it says that the time is not known. And as
    one may have been busy for as long as the cost of asking was measured, this is seen again before
    anybody is accused.
    """
    floor = output_bytes / bytes_per_second
    if seconds_per_call < floor <= seconds_per_call + doubt:
        raise Suspected(
            Reason.TOO_NOISY,
            f"calls took no longer than asking for nothing, which varied by {doubt * 1e6:.2f} us "
            "per call",
        )
    if seconds_per_call < floor:
        raise Suspected(
            Reason.PHYSICS_FLOOR,
            f"{seconds_per_call * 1e6:.2f} us per call, but storing {output_bytes} bytes takes at "
            f"least {floor * 1e6:.2f} us here",
        )


def check_seen(workload: str, fell_short: bool) -> None:
    """Raise `Suspected` where too few batches were looked into, also of who is slower than the
    reference: it might be called faster than its parent."""
    if fell_short:
        raise Suspected(
            Reason.TOO_NOISY,
            f"{workload}: whether calls were computed one by one could hardly be looked into, "
            "since the judge was kept waiting for a core",
        )
