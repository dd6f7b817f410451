"""The static screen: cheap, early and explained refusals, read from a candidate's syntax tree.

The screen is a courtesy, not the defence: what it misses, the judge catches while the candidate
runs. So a rule may be blind to an unusual spelling, but it must never refuse an honest kernel.
"""

from kernel_smith.evaluation.screen.driver import screen

__all__ = ["screen"]
