"""The shared language: frozen records with a schema version. Imports nothing else of ours."""

from kernel_smith.records.base import SCHEMA_VERSION, Record, VersionedRecord, content_hash
from kernel_smith.records.candidate import MAX_SOURCE, Candidate
from kernel_smith.records.compile_report import CompileReport, KernelFailure, KernelResources
from kernel_smith.records.device import Ceilings, Device, DeviceKernel, Roofline, Telemetry
from kernel_smith.records.evaluation import (
    Accuracy,
    BaselineSpeedup,
    BaselineTiming,
    Confinement,
    Diagnostic,
    Distribution,
    Environment,
    ErrorBin,
    Evaluation,
    Finding,
    Interval,
    KernelShare,
    Timing,
    WorkloadTiming,
    WorstElement,
)
from kernel_smith.records.options import Baseline, Limits, Options, Sampling
from kernel_smith.records.task import Admission, Precision, Task, Tolerance, Variant, Workload
from kernel_smith.records.verdict import MEANINGS, Meaning, Reason, Stage

__all__ = [
    "MAX_SOURCE",
    "MEANINGS",
    "SCHEMA_VERSION",
    "Accuracy",
    "Admission",
    "Baseline",
    "BaselineSpeedup",
    "BaselineTiming",
    "Candidate",
    "Ceilings",
    "CompileReport",
    "Confinement",
    "Device",
    "DeviceKernel",
    "Diagnostic",
    "Distribution",
    "Environment",
    "ErrorBin",
    "Evaluation",
    "Finding",
    "Interval",
    "KernelFailure",
    "KernelResources",
    "KernelShare",
    "Limits",
    "Meaning",
    "Options",
    "Precision",
    "Reason",
    "Record",
    "Roofline",
    "Sampling",
    "Stage",
    "Task",
    "Telemetry",
    "Timing",
    "Tolerance",
    "Variant",
    "VersionedRecord",
    "Workload",
    "WorkloadTiming",
    "WorstElement",
    "content_hash",
]
