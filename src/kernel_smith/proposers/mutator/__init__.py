"""The mutator: named structural edits on syntax trees, chosen by what paid before."""

from kernel_smith.proposers.mutator.edit import Edit, Site
from kernel_smith.proposers.mutator.mutator import Mutator
from kernel_smith.proposers.mutator.registry import EDITS

__all__ = ["EDITS", "Edit", "Mutator", "Site"]
