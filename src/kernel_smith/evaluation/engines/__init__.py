"""Where evaluations run. Today: this machine."""

from kernel_smith.evaluation.engines.cache import EvaluationCache
from kernel_smith.evaluation.engines.local import LocalEngine

__all__ = ["EvaluationCache", "LocalEngine"]
