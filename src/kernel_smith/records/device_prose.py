"""What bounds a kernel on its device, in sentences, for people and for models."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_smith.records.device import (
    Ceilings,
    CompiledKernel,
    Device,
    DeviceKernel,
    NsightKernel,
    Roofline,
    Telemetry,
    TracedKernel,
)
from kernel_smith.records.durations import seconds

_AT_THE_LIMIT = 0.9
_BEYOND = 1.05
_FAR = 0.1
_SMALLEST_SHARE = 0.005
_KERNELS_SHOWN = 12
_NAME_SHOWN = 72
_REGISTERS, _LANES = 64 * 1024, 32
_MOST_WARPS = {"7.5": 32, "8.6": 48, "8.9": 48, "12.0": 48}  # of others 64


def render_roofline(rooflines: Sequence[Roofline], ceilings: Ceilings) -> str:
    """One line per workload, and a hint for the one that is farthest from its limit."""
    if not rooflines:
        return ""
    lines = [f"Limits ({ceilings.device.name}, measured):"]
    lines += [f"  {_line(item, ceilings)}" for item in rooflines]
    larger = [item for item in rooflines if item.bound != "launch"]
    worst = min(larger or rooflines, key=lambda item: item.share)
    where = f" ({worst.workload})" if len(rooflines) > 1 else ""
    lines.append(f"  Next{where}: {_hint(worst)}")
    return "\n".join(lines)


def _line(item: Roofline, ceilings: Ceilings) -> str:
    if item.bound == "launch":
        return (
            f"{item.workload}: launch-bound: {_launches(item.launches)} "
            f"{'takes' if item.launches == 1 else 'take'} at least "
            f"{seconds(item.launches * ceilings.launch_seconds)} of {seconds(item.seconds)}; "
            f"the work itself {seconds(item.floor_seconds)}"
        )
    if item.share < _FAR:
        slowest = "computing" if item.bound == "compute" else "memory"
        return (
            f"{item.workload}: far from every limit: {seconds(item.seconds)} for what could take "
            f"{seconds(item.floor_seconds)} ({slowest})"
        )
    if item.bound == "compute":
        ceiling = f"{_rate(ceilings.flops_per_second[item.precision])}FLOP/s ({item.precision})"
    else:
        ceiling = f"{_rate(ceilings.copy_bytes_per_second)}B/s"
    return f"{item.workload}: {item.bound}-bound at {item.share:.0%} of {ceiling}; {_left(item)}"


def _left(item: Roofline) -> str:
    if item.share > _BEYOND:
        return "beyond the limit: it does less than the reference, or stays in the cache"
    if item.share > _AT_THE_LIMIT:
        return "at the limit"
    return f"{1 / item.share:.1f}x from the limit"


def _hint(item: Roofline) -> str:
    if item.bound == "launch":
        if item.launches > 1.5:
            return "fuse the kernels into fewer launches."
        return "one launch is the least; only a larger workload would show a faster kernel."
    if item.share > _AT_THE_LIMIT:
        return (
            f"it can only get faster by {'moving' if item.bound == 'memory' else 'computing'} less."
        )
    if item.share < _FAR and item.launches <= 1.5:
        return "start enough blocks to fill the device, and shorten chains of dependent steps."
    if item.launches > 1.5 and (item.share < _FAR or item.bound == "memory"):
        return "fuse, so that intermediate results do not travel through memory."
    if item.bound == "compute":
        return (
            "keep the matrix units busy: larger tiles, more stages in flight, "
            "and nothing but products in the inner loop."
        )
    return "wider, contiguous loads and more of them in flight; read nothing twice."


def render_kernels(kernels: Sequence[DeviceKernel]) -> str:
    """Where the device's time went, kernel by kernel."""
    if not kernels:
        return ""
    origins = dict.fromkeys(("authored", "library", "unknown"), 0.0)
    for kernel in kernels:
        origins[kernel.origin] += kernel.share
    shown = ", ".join(f"{share:.0%} {name}" for name, share in origins.items() if share)
    lines = [f"Kernels on the device, by time: {shown or 'no time'}."]
    visible = [kernel for kernel in kernels if kernel.share >= _SMALLEST_SHARE][:_KERNELS_SHOWN]
    for kernel in visible:
        lines += _kernel(kernel)
    if len(kernels) > len(visible):
        lines.append(f"  and {len(kernels) - len(visible)} more")
    return "\n".join(lines)


def render_compiled(kernels: Sequence[CompiledKernel], device: Device | None) -> str:
    """What each kernel takes of a multiprocessor, by what the compiler says."""
    told = dict.fromkeys(kernel for kernel in kernels if kernel.registers is not None)
    if not told:
        return ""
    lines = ["Kernels as compiled, per thread:"]
    for kernel in list(told)[:_KERNELS_SHOWN]:
        facts = [f"{kernel.registers} registers, {kernel.spill_bytes or 0} bytes spilled"]
        if kernel.shared_bytes:
            facts.append(f"{kernel.shared_bytes / 1024:.4g} KiB shared per block")
        room = _room(kernel.registers or 0, device)
        if room is not None:
            facts.append(f"registers leave room for {room:.0%} of a multiprocessor's warps")
        lines.append(f"  {kernel.name[:_NAME_SHOWN]}: {', '.join(facts)}")
    if len(told) > _KERNELS_SHOWN:
        lines.append(f"  and {len(told) - _KERNELS_SHOWN} more")
    return "\n".join(lines)


def _room(registers: int, device: Device | None) -> float | None:
    """Of an NVIDIA GPU, where 64 Ki registers are handed out to warps in steps of 8 per thread."""
    if device is None or device.kind != "cuda":
        return None
    most = _MOST_WARPS.get(device.capability, 64)
    per_warp = _LANES * -(-max(registers, 1) // 8) * 8
    return min(most, _REGISTERS // per_warp) / most


def render_nsight(kernels: Sequence[NsightKernel]) -> str:
    """What the counters say, launch by launch."""
    if not kernels:
        return ""
    lines = ["Nsight Compute, one call:"]
    for kernel in kernels[:_KERNELS_SHOWN]:
        facts = [
            f"{words} {share:.0%}"
            for words, share in (
                ("memory", kernel.memory_share),
                ("multiprocessors", kernel.compute_share),
                ("warps in use", kernel.occupancy),
                ("L2 hits", kernel.l2_hits),
            )
            if share is not None
        ]
        if kernel.bytes_read is not None and kernel.bytes_written is not None:
            read, written = kernel.bytes_read / 2**20, kernel.bytes_written / 2**20
            facts.append(f"{read:.1f} MiB read, {written:.1f} MiB written")
        if kernel.waits_for is not None:
            facts.append(f"waits most for {kernel.waits_for}")
        took = "" if kernel.seconds is None else f" {seconds(kernel.seconds)}:"
        lines.append(f"  {kernel.name[:_NAME_SHOWN]}:{took} {', '.join(facts)}")
    if len(kernels) > _KERNELS_SHOWN:
        lines.append(f"  and {len(kernels) - _KERNELS_SHOWN} more")
    return "\n".join(lines)


def render_traced(kernels: Sequence[TracedKernel]) -> str:
    """Where the time of one call went, without seconds: the tool's unit is not known."""
    if not kernels:
        return ""
    lines = ["mcTracer, one call:"]
    for kernel in kernels[:_KERNELS_SHOWN]:
        launches = _launches(kernel.launches)
        lines.append(f"  {kernel.share:6.1%}  {kernel.name[:_NAME_SHOWN]}: {launches}")
    if len(kernels) > _KERNELS_SHOWN:
        lines.append(f"  and {len(kernels) - _KERNELS_SHOWN} more")
    return "\n".join(lines)


def _kernel(kernel: DeviceKernel) -> list[str]:
    name = kernel.name
    if len(name) > _NAME_SHOWN:
        name = name[: _NAME_SHOWN - 3] + "..."
    lines = [
        f"  {kernel.share:6.1%}  {kernel.origin:<8}  {name}: {seconds(kernel.seconds)} per call, "
        f"{_launches(kernel.launches)}"
    ]
    facts = []
    if kernel.grid:
        blocks, threads = ("x".join(map(str, size)) for size in (kernel.grid, kernel.block))
        facts.append(f"grid {blocks} of {threads} threads")
    if kernel.registers is not None:
        facts.append(f"{kernel.registers} registers")
    if kernel.spills:
        facts.append(f"{kernel.spills} spilled")
    if kernel.shared_bytes:
        facts.append(f"{kernel.shared_bytes / 1024:.4g} KiB shared")
    if kernel.occupancy is not None:
        facts.append(f"occupancy {kernel.occupancy:.0%}")
    if facts:
        lines.append(f"          {', '.join(facts)}")
    return lines


def render_telemetry(telemetry: Telemetry) -> str:
    """One line, or two if something held the clock down."""
    if telemetry.missing:
        return f"Device while timed: not observed ({telemetry.missing})."
    facts = []
    if telemetry.sm_clock_mhz is not None:
        facts.append(f"SM clock {_range(telemetry.sm_clock_mhz)} MHz")
    if telemetry.memory_clock_mhz is not None:
        facts.append(f"memory clock {_range(telemetry.memory_clock_mhz)} MHz")
    if telemetry.power_watts is not None:
        facts.append(f"up to {telemetry.power_watts:.0f} W")
    if telemetry.temperature_c is not None:
        facts.append(f"up to {telemetry.temperature_c} C")
    plural = "" if telemetry.samples == 1 else "s"
    line = (
        f"Device while timed ({telemetry.samples} sample{plural}): {', '.join(facts) or 'silent'}."
    )
    if telemetry.throttled:
        line += (
            f"\n  Its clock was held down: {', '.join(telemetry.throttled)}. "
            "Compare speedups, not times."
        )
    return line


def _range(limits: tuple[int, int]) -> str:
    low, high = limits
    return str(high) if low == high else f"{low} to {high}"


def _launches(number: float) -> str:
    return "1 launch" if number == 1 else f"{number:.3g} launches"


def _rate(value: float) -> str:
    """Three digits and a prefix: `4.30 T`, to which a unit is added."""
    for prefix, size in (("T", 1e12), ("G", 1e9), ("M", 1e6)):
        if value >= size:
            return f"{value / size:#.3g}".removesuffix(".") + f" {prefix}"
    return f"{value:#.3g} "
