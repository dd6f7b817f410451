"""Confinement of an untrusted process by the operating system (Linux, x86_64 and aarch64).

A trusted monitor calls `enter_namespaces()` and forks; the child calls `confine(policy)` and may
run untrusted code from then on. It has no network, sees no other process, reads what the policy
lists, writes nothing but its scratch folder, and is bounded in memory, processes, time and disk.

Not covered: side channels of shared hardware, bugs of the kernel itself, and memory bandwidth.
What a machine cannot enforce is listed in `Report.missing`, never raised and never passed over.
"""

from kernel_smith.evaluation.sandbox.confine.apply import confine
from kernel_smith.evaluation.sandbox.confine.environment import scrubbed_environment
from kernel_smith.evaluation.sandbox.confine.namespaces import die_with_parent, enter_namespaces
from kernel_smith.evaluation.sandbox.confine.policy import Policy
from kernel_smith.evaluation.sandbox.confine.probe import modest_policy, probe
from kernel_smith.evaluation.sandbox.confine.readable import default_readable, installation_of
from kernel_smith.evaluation.sandbox.confine.report import Report
from kernel_smith.evaluation.sandbox.confine.trial import Outcome, run_confined
from kernel_smith.evaluation.sandbox.confine.watch import Usage, Watch, usage

__all__ = [
    "Outcome",
    "Policy",
    "Report",
    "Usage",
    "Watch",
    "confine",
    "default_readable",
    "die_with_parent",
    "enter_namespaces",
    "installation_of",
    "modest_policy",
    "probe",
    "run_confined",
    "scrubbed_environment",
    "usage",
]
