"""One call of an accepted candidate, for tools that watch a program from outside."""

from kernel_smith.evaluation.watching.call import Tool, WatchedCall, watched_call
from kernel_smith.evaluation.watching.run import run_tool

__all__ = ["Tool", "WatchedCall", "run_tool", "watched_call"]
