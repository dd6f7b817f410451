"""Which kernels MetaX's mcTracer saw in a candidate's call, for those who have it installed."""

from kernel_smith.evaluation.mctracer.profile import find_mctracer, trace_candidate

__all__ = ["find_mctracer", "trace_candidate"]
