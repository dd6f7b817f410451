"""What Nsight Compute says about a candidate's kernels, for those who have it installed."""

from kernel_smith.evaluation.nsight.profile import find_ncu, profile_candidate

__all__ = ["find_ncu", "profile_candidate"]
