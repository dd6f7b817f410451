"""Ways to have a task compiled: settings of the framework's compiler, one opener each."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from kernel_smith.errors import BadInput
from kernel_smith.proposers.seed.record import Seed

_PRODUCTS = {"mm", "addmm", "bmm", "baddbmm"}
_REDUCTION = re.compile(r"\btriton_(?:red|per)_")
_FEW_KERNELS = 12  # to tune each takes the device for some seconds
_WHOLE_ROW = 16384  # elements of a row that a program can hold in its registers


@dataclass(frozen=True)
class Recipe:
    """Settings, and what they say. `longest_row`: how many elements may be held at once where
    they are reduced; `authored`: with kernels of our own for what is left to the library;
    `rewrites`: after the graph was rewritten; `anywhere`: not for GPUs alone."""

    name: str
    summary: str
    settings: dict[str, object] = field(default_factory=dict)
    longest_row: int | None = None
    authored: bool = False
    rewrites: bool = False
    anywhere: bool = False

    def is_worth_it(self, seed: Seed) -> bool:
        """Tell whether it has a chance to make something else than the default made, in time."""
        text = seed.source + seed.without_library
        reduces = _REDUCTION.search(text) is not None
        calls = set(seed.library_calls)
        chances = {
            "rewritten": bool(seed.rewrites),
            "tuned": seed.kernels <= _FEW_KERNELS,
            "native-products": bool(_PRODUCTS & calls) or "multiply[" in text,
            "plain-layout": "convolution" in calls or "convolve" in text,
            "whole-rows": reduces,
            "looped-rows": reduces,
            "unsplit": reduces,
        }
        return chances.get(self.name, True)


DEFAULT = Recipe("default", "what torch.compile makes of it", anywhere=True)
REWRITTEN = Recipe(
    "rewritten", "after rewrites that are exact in real arithmetic", rewrites=True, anywhere=True
)
_OTHERS = (
    REWRITTEN,
    Recipe(
        "tuned",
        "with blocks tuned by the compiler, and products with a vector as sums",
        {"max_autotune_pointwise": True, "coordinate_descent_tuning": True},
    ),
    Recipe(
        "native-products",
        "with products as loops of the compiler's, that what follows is fused into",
        {"triton.native_matmul": True},
        authored=True,
    ),
    Recipe("whole-rows", "with whole rows in registers", longest_row=_WHOLE_ROW),
    Recipe("looped-rows", "with loops over all rows", {"triton.persistent_reductions": False}),
    Recipe("unsplit", "with reductions in one launch", {"split_reductions": False}),
    Recipe("plain-layout", "with images laid out as they come", {"layout_optimization": False}),
)
RECIPES = {recipe.name: recipe for recipe in (DEFAULT, *_OTHERS)}


def find_recipe(name: str) -> Recipe:
    """Return a recipe by its name."""
    if name not in RECIPES:
        raise BadInput(
            f"the compiler has no recipe {name!r}", hint=f"choose from: {', '.join(RECIPES)}"
        )
    return RECIPES[name]
