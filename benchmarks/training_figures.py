"""What the runs of the training experiment show: shares, gains and speedups, with intervals."""

from __future__ import annotations

import json
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import geometric_mean
from typing import Any

from training_outcomes import SHARES, Told

from kernel_smith.records import Interval

MEANS = ("gain_per_proposal", "best_by_steps", "best_over_start")
_RESAMPLES = 2000


def figures(told: Sequence[Told], finals: Sequence[float]) -> dict[str, Any]:
    """Shares of all proposals; means over runs. Intervals are of 95%."""
    rows = [row for run in told for row in run.proposals]
    gains = [[row["gain"] for row in run.proposals] for run in told if run.proposals]
    best = [run.best_by_steps for run in told]
    return {
        "proposals": len(rows),
        "shares": {name: wilson(sum(row[name] for row in rows), len(rows)) for name in SHARES},
        "gain_per_proposal": resampled(gains, _mean_of_all),
        "best_by_steps": resampled(best, geometric_mean),
        "best_over_start": resampled(finals, geometric_mean),
        "runs": len(told),
    }


def _mean_of_all(runs: Sequence[list[float]]) -> float:
    gains = [gain for run in runs for gain in run]
    return sum(gains) / len(gains)


def wilson(count: int, total: int, z: float = 1.96) -> dict[str, float] | None:
    """A share with the interval that also holds near 0 and 1."""
    if not total:
        return None
    share = count / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    spread = math.sqrt(share * (1 - share) / total + (z / (2 * total)) ** 2)
    half = z * spread / (1 + z * z / total)
    return Interval(
        value=share, low=max(0.0, middle - half), high=min(1.0, middle + half)
    ).model_dump()


def resampled(
    items: Sequence[Any], figure: Callable[[Sequence[Any]], float]
) -> dict[str, float] | None:
    """A figure of all items, with the interval of the same figure of items drawn from them."""
    if not items:
        return None
    chance = random.Random(0)
    drawn = sorted(figure(chance.choices(items, k=len(items))) for _ in range(_RESAMPLES))
    low, high = drawn[int(0.025 * _RESAMPLES)], drawn[int(0.975 * _RESAMPLES)]
    return Interval(value=figure(items), low=low, high=high).model_dump()


def curve(folder: Path, names: Sequence[str]) -> list[dict[str, float]]:
    lines = read_lines(folder / "metrics.jsonl")
    kept = [{name: line[name] for name in ("step", *names) if name in line} for line in lines]
    return [line for line in kept if len(line) > 1]


def caught(folder: Path) -> dict[str, Any]:
    """What the judge caught while RL went on: how often, for what, and a few of them."""
    lines = read_lines(folder / "caught.jsonl")
    reasons: dict[str, int] = {}
    for line in lines:
        reasons[line["reason"]] = reasons.get(line["reason"], 0) + 1
    answers = len(read_lines(folder / "rollouts.jsonl"))
    return {"answers": answers, "caught": len(lines), "reasons": reasons, "examples": lines[-3:]}


def describe_accelerator() -> dict[str, str]:
    import torch
    import transformers
    import trl

    gpu = torch.cuda.get_device_name(0) if torch.cuda.is_available() else "none"
    return {"gpu": gpu, "transformers": transformers.__version__, "trl": trl.__version__}


def print_table(report: dict[str, Any]) -> None:
    columns = ["proposer", "proposals", *SHARES, *(name.replace("_", " ") for name in MEANS)]
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for arm, of_arm in report["arms"].items():
        shares = [_shown(of_arm["shares"][name], 100, "%") for name in SHARES]
        means = [_shown(of_arm[name], 1, "") for name in MEANS]
        print("| " + " | ".join([arm, str(of_arm["proposals"]), *shares, *means]) + " |")
    print(f"\n{report['runs_of_each']} runs of each. Seconds: {report['seconds']}.")
    watch = report["caught"]
    print(f"RL: {watch['caught']} of {watch['answers']} answers cheated: {watch['reasons']}.")


def _shown(figure: dict[str, float] | None, scale: float, unit: str) -> str:
    if figure is None:
        return "-"
    digits = 0 if unit else 2
    value, low, high = (f"{scale * figure[name]:.{digits}f}" for name in ("value", "low", "high"))
    return f"{value}{unit} [{low}, {high}]"


def plain(value: object) -> object:
    """Of a path its name alone: where things lie says nothing to others."""
    return value.name if isinstance(value, Path) else value


def read_lines(path: Path) -> list[dict[str, Any]]:
    """A crash may cut the last line."""
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def read_json(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text()) if path.exists() else {}
