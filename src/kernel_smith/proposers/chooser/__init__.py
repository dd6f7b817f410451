"""The chooser: a learnt policy over the edits that the mutator could make at a program."""

from kernel_smith.proposers.chooser.adviser import Advice, Adviser, ByNumbers, open_adviser
from kernel_smith.proposers.chooser.chooser import Chooser
from kernel_smith.proposers.chooser.options import Menu, Option, menu_at
from kernel_smith.proposers.chooser.policy import Policy, read_policy
from kernel_smith.proposers.chooser.state import state_text

__all__ = [
    "Advice",
    "Adviser",
    "ByNumbers",
    "Chooser",
    "Menu",
    "Option",
    "Policy",
    "menu_at",
    "open_adviser",
    "read_policy",
    "state_text",
]
