"""The chooser: a learnt policy over the edits that the mutator could make at a program."""

from kernel_smith.proposers.chooser.options import Menu, Option, menu_at
from kernel_smith.proposers.chooser.state import state_text

__all__ = ["Menu", "Option", "menu_at", "state_text"]
