"""The machine that candidates are timed on, in sentences for whoever proposes the next one."""

from __future__ import annotations

from kernel_smith.records import Ceilings, Device, Evaluation, Roofline, WorkloadWork


def describe_hardware(evaluation: Evaluation) -> str:
    """From the record of an evaluation on it."""
    machine = evaluation.environment
    lines = [f"Processor: {machine.processor} ({machine.machine}). torch {machine.torch}."]
    if evaluation.device is None and machine.instruction_set:
        lines.append(f"Vector instructions: {machine.instruction_set}.")
    if evaluation.device is None and machine.caches:
        lines.append(f"Caches: {machine.caches}.")
    if evaluation.timing is not None and evaluation.device is None:
        cores = len(evaluation.timing.cores)
        lines.append(f"Timed on {cores} core{'' if cores == 1 else 's'}; {machine.compiler}.")
    if evaluation.device is not None:
        lines.append(_gpu(evaluation.device))
    if evaluation.ceilings is not None:
        lines.append(_limits(evaluation.ceilings))
    lines += [
        f"{_work(each)}; at best {each.floor_seconds * 1e6:.3g} us."
        for each in evaluation.rooflines
    ]
    lines += [f"{_work(each)}." for each in evaluation.work]
    return " ".join(lines)


def _work(takes: Roofline | WorkloadWork) -> str:
    """Return what a workload takes at least, whoever does it."""
    flops = f", {takes.flops / 1e9:.3g} GFLOP" if takes.flops else ""
    return f"Workload {takes.workload}: {takes.bytes / 1e6:.3g} MB to be moved{flops}"


def _gpu(device: Device) -> str:
    return (
        f"GPU: {device.name}, compute capability {device.capability}, "
        f"{device.multiprocessors} multiprocessors, {device.l2_bytes >> 20} MiB of L2 cache, "
        f"{device.memory_bytes >> 30} GiB of memory."
    )


def _limits(ceilings: Ceilings) -> str:
    products = ", ".join(
        f"{name} {rate / 1e12:.0f}" for name, rate in sorted(ceilings.flops_per_second.items())
    )
    return (
        f"Measured limits: {ceilings.copy_bytes_per_second / 1e12:.2f} TB/s; matrix products in "
        f"TFLOP/s: {products}; an empty kernel {ceilings.launch_seconds * 1e6:.2f} us."
    )
