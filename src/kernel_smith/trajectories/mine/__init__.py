"""Tasks from the modules of Python packages, which are read and never imported.

    read files -> classes -> extract -> try out, confined -> task file -> admission

Nothing of a package is imported or set up. An extract runs in a confined child only, until it has
passed; every class that does not become a task has a named reason.
"""

from kernel_smith.trajectories.mine.run import MineSettings, mine
from kernel_smith.trajectories.mine.state import Summary

__all__ = ["MineSettings", "Summary", "mine"]
