"""Where evaluations run: this machine, a service elsewhere, a Ray cluster, or simulated devices."""

from kernel_smith.evaluation.engines.cache import EvaluationCache
from kernel_smith.evaluation.engines.choose import open_engine
from kernel_smith.evaluation.engines.local import LocalEngine
from kernel_smith.evaluation.engines.pool import LocalPool

__all__ = ["EvaluationCache", "LocalEngine", "LocalPool", "open_engine"]
