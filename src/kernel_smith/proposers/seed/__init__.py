"""Compiler seeds: the framework compiler's own answer to a task, as a readable candidate.

The text transformations in this folder are pure; `inside` runs torch in a process of its own.
"""

from kernel_smith.proposers.seed.make import PATIENCE_MINUTES, SeedMaker, make_seed
from kernel_smith.proposers.seed.recipes import DEFAULT, RECIPES, Recipe, find_recipe
from kernel_smith.proposers.seed.record import Seed

__all__ = [
    "DEFAULT",
    "PATIENCE_MINUTES",
    "RECIPES",
    "Recipe",
    "Seed",
    "SeedMaker",
    "find_recipe",
    "make_seed",
]
