"""Where evaluations run. Today: this machine, with one judge or with several."""

from kernel_smith.evaluation.engines.cache import EvaluationCache
from kernel_smith.evaluation.engines.local import LocalEngine
from kernel_smith.evaluation.engines.pool import LocalPool

__all__ = ["EvaluationCache", "LocalEngine", "LocalPool"]
