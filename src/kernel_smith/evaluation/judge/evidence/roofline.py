"""What bounds a workload on a device, and how far away that limit is."""

from __future__ import annotations

from typing import Literal

from kernel_smith.evaluation.judge.evidence.work import Work
from kernel_smith.records import Ceilings, Roofline

# In times the launches alone. A kernel that loads and stores one element takes twice as long as
# an empty one, and a useful one more; beyond this, something else than launching takes the time.
_NEAR_LAUNCHES = 5.0


def roofline(
    work: Work, ceilings: Ceilings, seconds: float, workload: str, launches: float = 1.0
) -> Roofline:
    """`seconds` per call in which `launches` kernels ran, held against the device's limits."""
    precision, ceiling = _ceiling(work.precision, ceilings)
    moving = work.traffic_bytes / ceilings.copy_bytes_per_second
    computing = work.flops / ceiling if ceiling else 0.0
    launching = launches * ceilings.launch_seconds
    floor = max(moving, computing)
    bound: Literal["memory", "compute", "launch"] = "compute" if computing > moving else "memory"
    if launching > floor and seconds <= _NEAR_LAUNCHES * launching:
        bound = "launch"
    return Roofline(
        workload=workload,
        bytes=work.traffic_bytes,
        flops=work.flops,
        precision=precision,
        launches=launches,
        seconds=seconds,
        bytes_per_second=work.traffic_bytes / seconds,
        flops_per_second=work.flops / seconds,
        bound=bound,
        share=(launching if bound == "launch" else floor) / seconds,
        floor_seconds=floor,
    )


def _ceiling(precision: str, ceilings: Ceilings) -> tuple[str, float]:
    """Of that precision; else of the fastest that there is, which invents no limit."""
    known = ceilings.flops_per_second
    if precision in known or not known:
        return precision, known.get(precision, 0.0)
    fastest = max(known, key=lambda name: known[name])
    return fastest, known[fastest]
