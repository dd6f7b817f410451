"""A run's history in words: settings, funnel, best kernel, curve, shares and costs."""

from __future__ import annotations

from collections import Counter
from typing import Any

from kernel_smith.records import RunConfig
from kernel_smith.records.counts import counted
from kernel_smith.records.prose import describe_shown
from kernel_smith.store import History, StepFacts
from kernel_smith.store.facts import GATES, curve_by_evaluation

_BARS = "▁▂▃▄▅▆▇█"
_WIDTH = 60


def describe(history: History) -> list[str]:
    """Line by line, for people."""
    task = f"{history.task.name}, precision {history.task.precision}"
    lines = [f"task       {task}, backend {history.config.backend}"]
    lines += [f"settings   {line}" for line in _settings(history.config)]
    lines.append(f"started    {history.started:%F %T}" + _resumed(history))
    if history.ended is not None:
        lines.append(f"ended      {history.ended}")
    lines.append(f"funnel     {_funnel(history)}")
    lines.append(f"best       {_best(history)}")
    if history.best is None:
        lines += [f"dropped    {name}: {why}" for name, why in history.last_drop.items()]
    lines += [f"confirmed  {line}" for line in _confirmed(history)]
    curve = curve_by_evaluation(history)
    if any(curve):
        lines.append(f"curve      {sparkline(curve)}  up to {max(curve):.2f}x (95% lower bound)")
    lines += [f"proposer   {line}" for line in _proposers(history)]
    lines.append(f"model      {_usage(history)}")
    return lines


def as_json(history: History, state: str) -> dict[str, Any]:
    """The same for machines."""
    return {
        "run": history.run,
        "state": state,
        "task": history.task.name,
        "precision": history.task.precision.value,
        "config": history.config.model_dump(mode="json"),
        "started": history.started.isoformat(),
        "ended": history.ended,
        "funnel": {gate: history.funnel[gate] for gate in GATES},
        "dropped": history.funnel["dropped"],
        "remeasured": history.remeasured,
        "resumed": history.resumed,
        "best": step_as_json(history.best) if history.best else None,
        "confirmed": history.best is not None and history.best.confirmed,
        "unconfirmed": history.unconfirmed,
        "new_bests": history.new_bests,
        "curve": curve_by_evaluation(history),
        "proposers": shares(history),
        "usage": history.usage.model_dump(mode="json"),
    }


def step_as_json(facts: StepFacts) -> dict[str, Any]:
    return {
        "step": facts.step,
        "label": facts.label,
        "candidate": facts.candidate,
        "proposer": facts.proposer,
        "parents": list(facts.parents),
        "summary": facts.summary,
        "stage": facts.stage,
        "reason": facts.reason,
        "speedup": facts.speedup.model_dump() if facts.speedup else None,
        "confirmed": facts.confirmed,
        "shown": {each.baseline: each.speedup.model_dump() for each in facts.shown},
    }


def outcome(facts: StepFacts) -> str:
    """Return the speedup with its interval, or why there is none."""
    if facts.speedup is not None:
        speedup = facts.speedup
        return f"{speedup.value:.2f}x [{speedup.low:.2f}, {speedup.high:.2f}]"
    if facts.stage is None:
        return "in flight"
    return f"{facts.stage}: {facts.reason}" if facts.reason else f"{facts.stage}, not timed"


def shares(history: History) -> dict[str, dict[str, int]]:
    """Per proposer: steps, steps that ended with a timing, and steps that became the best."""
    steps: Counter[str] = Counter()
    timed: Counter[str] = Counter()
    bests: Counter[str] = Counter()
    for facts in history.steps.values():
        steps[facts.proposer] += 1
        timed[facts.proposer] += facts.speedup is not None
        bests[facts.proposer] += history.was_best(facts)
    return {
        name: {"steps": count, "timed": timed[name], "new_bests": bests[name]}
        for name, count in steps.most_common()
    }


def sparkline(values: list[float], width: int = _WIDTH) -> str:
    """Return a curve as one line of at most so many characters; each shows the last of its
    stretch."""
    width = min(width, len(values))
    ends = [(column + 1) * len(values) // width - 1 for column in range(width)]
    top = max(values) or 1.0
    return "".join(_BARS[round(values[end] / top * (len(_BARS) - 1))] for end in ends)


def _settings(config: RunConfig) -> list[str]:
    weights = ", ".join(f"{name} {weight:g}" for name, weight in config.proposers.items())
    bounds = config.budget.model_dump(exclude_none=True)
    budget = ", ".join(f"{name} {bound:g}" for name, bound in bounds.items()) or "none"
    shared = f"budget: {budget}; proposers: {weights or 'none'}"
    if config.method not in ("islands", "paper"):
        return [shared, f"method {config.method}, seed {config.seed}"]
    return [
        shared,
        f"{counted(config.islands, 'island')}, "
        f"{counted(config.elites_per_cell, 'elite')} per cell of "
        f"{' x '.join(config.features)}, migration every {config.migrate_every} evaluations, "
        f"seed {config.seed}",
    ]


def _resumed(history: History) -> str:
    return f", resumed {counted(history.resumed, 'time')}" if history.resumed else ""


def _funnel(history: History) -> str:
    counts = history.funnel
    gates = ("proposed", "compiled", "correct", "honest", "faster")
    line = " -> ".join(f"{counts[gate]} {gate}" for gate in gates)
    flying = counts["proposed"] - counts["evaluated"]
    rest = [f"{flying} in flight"] if flying else []
    rest += [f"{counts['dropped']} dropped unevaluated"] if counts["dropped"] else []
    return f"{line} ({', '.join(rest)})" if rest else line


def _best(history: History) -> str:
    best = history.best
    if best is None:
        return "none yet"
    summary = f": {best.summary.splitlines()[0]}" if best.summary.strip() else ""
    again = (
        f"; challengers measured again {counted(history.remeasured, 'time')}"
        if history.remeasured
        else ""
    )
    return f"{outcome(best)} at step {best.step}, proposed by {best.proposer}{summary}{again}"


def _confirmed(history: History) -> list[str]:
    """Return what the best showed at full length, or that it has not been asked to."""
    if history.best is None:
        return []
    if history.best.shown:
        return [describe_shown(each) for each in history.best.shown]
    return [f"no: {history.unconfirmed}" if history.unconfirmed else "not yet"]


def _proposers(history: History) -> list[str]:
    total = len(history.steps)
    return [
        f"{name}: {counted(row['steps'], 'step')} ({row['steps'] / total:.0%}), "
        f"{row['timed']} timed, {counted(row['new_bests'], 'new best')}"
        for name, row in shares(history).items()
    ]


def _usage(history: History) -> str:
    usage = history.usage
    if not usage.requests and not usage.prompt_tokens:
        return "not asked"
    return (
        f"{counted(usage.requests, 'request')}, {usage.prompt_tokens:,} prompt tokens "
        f"({usage.cached_tokens:,} cached), {usage.completion_tokens:,} completion tokens, "
        f"${usage.dollars:.2f}"
    )
