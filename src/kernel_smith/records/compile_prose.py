"""A compile report in sentences, for people and for models."""

from __future__ import annotations

from collections.abc import Mapping

from kernel_smith.records.compile_report import (
    CompileReport,
    Constant,
    KernelFailure,
    KernelResources,
)
from kernel_smith.records.verdict import MEANINGS

_LOG_LINES = 40
_KERNELS_SHOWN = 30


def render_compiled(report: CompileReport) -> str:
    """Verdict first, then kernels, failures and the log."""
    parts = [_verdict(report)]
    if report.kernels:
        parts.append(_kernels(report))
    if report.failures:
        parts.append("Rejected by the compiler:\n" + "\n".join(map(_failure, report.failures)))
    if report.log and not report.ok:
        lines = report.log.splitlines()[-_LOG_LINES:]
        parts.append("Log:\n" + "\n".join(f"  {line}" for line in lines))
    return "\n".join(parts)


def _verdict(report: CompileReport) -> str:
    if report.reason is None:
        launched = [kernel for kernel in report.kernels if kernel.launches != 0]
        names = ", ".join(dict.fromkeys(kernel.name for kernel in launched))
        return f"ok: compiles for {report.target}: {names}. Nothing was run."
    meaning = MEANINGS[report.reason]
    detail = f"\n  {report.message}" if report.message else ""
    return (
        f"{report.stage.value}: {report.reason.value}: {meaning.sentence}.{detail}"
        f"\n  Advice: {meaning.advice}"
    )


def _kernels(report: CompileReport) -> str:
    lines = [f"Kernels on {report.target} (registers and spills per thread):"]
    for kernel in report.kernels[:_KERNELS_SHOWN]:
        lines += _kernel(kernel, report.shared_limit)
    if len(report.kernels) > _KERNELS_SHOWN:
        lines.append(f"  and {len(report.kernels) - _KERNELS_SHOWN} more")
    return "\n".join(lines)


def _kernel(kernel: KernelResources, shared_limit: int) -> list[str]:
    where = f"line {kernel.line}" if kernel.line else "not in the candidate's file"
    registers = "unknown" if kernel.registers is None else str(kernel.registers)
    spills = "unknown" if kernel.spill_bytes is None else f"{kernel.spill_bytes} bytes"
    size = "" if kernel.warps is None else f", {kernel.warps} warps, {kernel.stages} stages"
    return [
        f"  {kernel.name} ({where}){_constants(kernel.constants)}",
        f"    {registers} registers, {spills} spilled, shared memory "
        f"{kernel.shared_bytes / 1024:.4g} of {shared_limit / 1024:.4g} KiB{size}{_fate(kernel)}",
    ]


def _fate(kernel: KernelResources) -> str:
    if not kernel.fits:
        return "; does not fit"
    if kernel.launches is None:
        return ""
    filled = "" if kernel.occupancy is None else f"occupancy {kernel.occupancy:.0%}, "
    plural = "" if kernel.launches == 1 else "es"
    times = f"{kernel.launches} launch{plural} ({', '.join(kernel.workloads)})"
    return f"; {filled}{times if kernel.launches else 'tried, not launched'}"


def _failure(failure: KernelFailure) -> str:
    where = f"line {failure.line}: " if failure.line else ""
    return f"  {where}{failure.name}{_constants(failure.constants)}: {failure.message}"


def _constants(constants: Mapping[str, Constant]) -> str:
    return "".join(f" {name}={value}" for name, value in constants.items())
