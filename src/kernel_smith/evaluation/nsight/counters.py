"""Nsight Compute's table of counters, one row per kernel launch, as records."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator

from kernel_smith.errors import MissingPrerequisite
from kernel_smith.records import NsightKernel

_STALL = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
_STALLS = {
    "long_scoreboard": "loads from memory",
    "short_scoreboard": "loads from shared memory",
    "lg_throttle": "the queue of memory instructions",
    "mio_throttle": "the queue of shared memory instructions",
    "math_pipe_throttle": "a busy arithmetic unit",
    "wait": "fixed latencies",
    "barrier": "barriers",
    "not_selected": "other warps that were ready, too",
    "no_instruction": "instructions",
}
_SECONDS = "gpu__time_duration.sum"
_MEMORY = "dram__throughput.avg.pct_of_peak_sustained_elapsed"
_COMPUTE = "sm__throughput.avg.pct_of_peak_sustained_elapsed"
_OCCUPANCY = "sm__warps_active.avg.pct_of_peak_sustained_active"
_L2 = "lts__t_sector_hit_rate.pct"
_READ = "dram__bytes_read.sum"
_WRITTEN = "dram__bytes_write.sum"
METRICS = (
    _SECONDS,
    _MEMORY,
    _COMPUTE,
    _OCCUPANCY,
    _L2,
    _READ,
    _WRITTEN,
    *(_STALL.format(name) for name in _STALLS),
)
_NANOSECONDS = {"nsecond": 1.0, "ns": 1.0, "usecond": 1e3, "us": 1e3, "second": 1e9, "s": 1e9}


def read_counters(text: str) -> tuple[NsightKernel, ...]:
    """From the output of `ncu --csv --page raw`, which the program's own output may surround."""
    header = next((n for n, line in enumerate(text.splitlines()) if '"Kernel Name"' in line), None)
    if header is None:
        raise MissingPrerequisite(
            "Nsight Compute saw no kernel of the candidate", hint="leave out --ncu"
        )
    table = csv.reader(io.StringIO("\n".join(text.splitlines()[header:])))
    names = next(table)
    units = dict(zip(names, next(table, []), strict=False))
    return tuple(_kernel(row, units) for row in _rows(names, table))


def _rows(names: list[str], table: Iterator[list[str]]) -> Iterator[dict[str, str]]:
    for row in table:
        if len(row) == len(names):
            yield dict(zip(names, row, strict=True))


def _kernel(row: dict[str, str], units: dict[str, str]) -> NsightKernel:
    ratios = {words: _number(row, _STALL.format(name)) for name, words in _STALLS.items()}
    known = {words: ratio for words, ratio in ratios.items() if ratio}
    nanoseconds = _number(row, _SECONDS)
    return NsightKernel(
        name=row["Kernel Name"],
        seconds=None
        if nanoseconds is None
        else nanoseconds * _NANOSECONDS.get(units.get(_SECONDS, ""), 1.0) / 1e9,
        memory_share=_share(row, _MEMORY),
        compute_share=_share(row, _COMPUTE),
        occupancy=_share(row, _OCCUPANCY),
        l2_hits=_share(row, _L2),
        bytes_read=_count(row, _READ),
        bytes_written=_count(row, _WRITTEN),
        waits_for=max(known, key=lambda words: known[words]) if known else None,
    )


def _number(row: dict[str, str], metric: str) -> float | None:
    try:
        return float(row.get(metric, "").replace(",", ""))
    except ValueError:  # counters that this GPU does not have
        return None


def _share(row: dict[str, str], metric: str) -> float | None:
    percent = _number(row, metric)
    return None if percent is None else percent / 100


def _count(row: dict[str, str], metric: str) -> int | None:
    number = _number(row, metric)
    return None if number is None else round(number)
