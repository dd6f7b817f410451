"""Which modules of a program take its time, and how much of it a kernel could save."""

from kernel_smith.shipping.profiling.report import Finding, Report, profile_script

__all__ = ["Finding", "Report", "profile_script"]
