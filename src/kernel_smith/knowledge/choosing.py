"""Which parts of all that is known help with one task on one machine."""

from __future__ import annotations

import platform
from pathlib import Path

from kernel_smith.knowledge.guides import Section, all_guides
from kernel_smith.knowledge.measured import all_measured, sections_of
from kernel_smith.records import Task

_NVIDIA = Path("/proc/driver/nvidia/gpus")


def this_machine() -> str:
    """Return a few words about this machine, such as guides are chosen by."""
    models = [path.read_text() for path in sorted(_NVIDIA.glob("*/information"))]
    return " ".join([platform.machine(), *models])


def sections_for(task: Task, backend: str, hardware: str) -> tuple[Section, ...]:
    """Return what to know about writing a kernel for a task, the most general first.

    `hardware` is the machine in sentences, as requests have it. Guides about other devices are left
    out, and so are sections for other families of tasks, and figures of other machines.
    """
    chosen = [
        section
        for guide in all_guides()
        if guide.backend == backend and (guide.hardware or "") in hardware
        for section in guide.sections
        if not section.families or task.family in section.families
    ]
    for measured in all_measured():
        if measured.backend == backend and measured.hardware in hardware:
            chosen += sections_of(measured, task.family)
    return tuple(chosen)
