"""For tasks that forbid the library: how much of the device's time is not the candidate's own work?

What is left of the time when the authored kernels do nothing was spent by others. The judge's own
clock says so, and the candidate cannot talk it away. The profile of the candidate's process, which
it could falsify, knows about shorter times.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from kernel_smith.evaluation.judge.platform.bench import Bench
from kernel_smith.evaluation.judge.platform.device_participant import DeviceParticipant
from kernel_smith.evaluation.judge.processes.child import ChildFailed
from kernel_smith.evaluation.judge.rejection import Rejected
from kernel_smith.records import DeviceKernel, Reason, Workload

_CALLS, _REPLAYS = 16, 5
_SHARE = 0.1
_CLOCK_SECONDS = 5e-6  # shorter times are noise to the clock
_PROFILE_SECONDS = 2e-6
_SECOND_LOOKS, _UNTIL_NEXT_LOOK = 4, 0.05


def seconds_without_kernels(
    bench: Bench[DeviceParticipant], timed: DeviceParticipant, workload: Workload
) -> float:
    """Seconds per call without the candidate's kernels; needs the device alone.

    Those of Triton are left out of the graph, and others do nothing in a process of their own. Zero
    where that cannot go on without its kernels, or cannot be captured.
    """
    place = bench.platform.place
    timed.child.move_to(place.timed)
    try:
        calls = min(_CALLS, bench.prepare(workload).capacity)
        sets = bench.enter(timed, workload, calls, timed=True).pool.timing_sets()
        timed.bind([next(sets) for _ in range(calls)])
        timed.run()
        if timed.capture(disarmed=True) is not None:
            return 0.0
        spent = min(timed.replay().windows.run_wall for _ in range(_REPLAYS))
    except ChildFailed:
        return 0.0
    finally:
        timed.child.move_to(place.judge)
    empty = min(bench.eager().run_nothing().run_wall for _ in range(_REPLAYS))
    return max(spent - empty, 0.0) / calls


def check_library_seconds(measure: Callable[[], float], own: float) -> None:
    """Raise `Rejected` where the time without the candidate's kernels is a good part of all.

    Other programs may use the device, too: nobody is accused for a moment's work of theirs.
    """
    allowed = max(_SHARE * own, _CLOCK_SECONDS)
    others = measure()
    for _ in range(_SECOND_LOOKS):
        if others <= allowed:
            return
        time.sleep(_UNTIL_NEXT_LOOK)
        others = min(others, measure())
    if others > allowed:
        raise Rejected(
            Reason.LIBRARY_FORBIDDEN,
            f"with its kernels doing nothing a call still takes {others * 1e6:.1f} us of the "
            f"device's time, of {own * 1e6:.1f} us with them",
        )


def check_library_kernels(kernels: Iterable[DeviceKernel]) -> None:
    """The same by the list of kernels that ran."""
    library = [kernel for kernel in kernels if kernel.origin == "library"]
    share, seconds = (sum(k.share for k in library), sum(k.seconds for k in library))
    if share > _SHARE and seconds > _PROFILE_SECONDS:
        names = ", ".join(kernel.name for kernel in library[:3])
        raise Rejected(
            Reason.LIBRARY_FORBIDDEN,
            f"{share:.0%} of the device's time ({seconds * 1e6:.1f} us per call) went to {names}",
            device_kernels=tuple(kernels),
        )
