"""A training's numbers over its steps, as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

_PANELS = (
    ("loss", ("loss", "eval_loss")),
    ("reward", ("reward", "eval_reward")),
    ("share of answers", ("parsed", "correct", "faster", "cheating", "unknown")),
    ("length of answers", ("completions/mean_length",)),
    ("learning rate", ("learning_rate",)),
)


def draw_curves(metrics: Sequence[dict[str, Any]], path: Path) -> bool:
    """One panel for each kind of number that occurs; False if there is nothing to draw, or nobody
    who could."""
    panels = [
        (title, found)
        for title, names in _PANELS
        if (found := [name for name in names if any(name in line for line in metrics)])
    ]
    if not panels or find_spec("matplotlib") is None:
        return False
    from matplotlib.figure import Figure  # without pyplot: no window, no global state

    figure = Figure(figsize=(7, 2.2 * len(panels)), layout="constrained")
    axes = figure.subplots(len(panels), 1, sharex=True, squeeze=False)[:, 0]
    for axis, (title, names) in zip(axes, panels, strict=True):
        for name in names:
            points = [(line["step"], line[name]) for line in metrics if name in line]
            axis.plot(*zip(*points, strict=True), marker=".", label=name)
        axis.set_ylabel(title)
        axis.grid(alpha=0.3)
        if len(names) > 1:
            axis.legend(fontsize="small")
    axes[-1].set_xlabel("step")
    figure.savefig(path, dpi=120)
    return True
