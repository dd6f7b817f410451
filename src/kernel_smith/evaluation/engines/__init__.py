"""Where evaluations run: this machine, with one judge or with several, or a service elsewhere."""

from kernel_smith.evaluation.engines.cache import EvaluationCache
from kernel_smith.evaluation.engines.choose import open_engine
from kernel_smith.evaluation.engines.local import LocalEngine
from kernel_smith.evaluation.engines.pool import LocalPool

__all__ = ["EvaluationCache", "LocalEngine", "LocalPool", "open_engine"]
