"""A result as Markdown: the leaderboard, levels, categories, cost, and whatever fell short."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from kernel_smith.bench.scores import EAGER
from kernel_smith.records import Interval
from kernel_smith.records.bench import Arm, BenchResult, BenchRow, Board, Place, Scores, Stamp

MADE_UP = "MADE UP by simulated devices: nothing was compiled, run or measured."
_LONGEST_REASON = 160
_COUNTED = {
    "count": "problems that cannot be judged count as not solved",
    "leave-out": "problems that cannot be judged are left out",
}


def markdown(result: BenchResult, boards: Sequence[Board]) -> str:
    parts = ["# Benchmark", _stamp(result.stamp), leaderboard(boards)]
    if any(board.made_up for board in boards):
        parts.insert(1, f"**{MADE_UP}**")
    parts += [_arms(result.arms)]
    for board in boards:
        parts.append(f"## {board.arm}, {board.precision.value}")
        parts += [_groups("level", board), _against(board), _cost(board)]
        parts.append(_groups("category", board))
    parts += [_short_fallen(result.rows), _caught(result.rows), _problems(result.rows)]
    return "\n\n".join(part for part in parts if part) + "\n"


def leaderboard(boards: Sequence[Board]) -> str:
    """Return the averages over levels, the highest AMSR first; arms of one precision stand
    together."""
    baselines = dict.fromkeys(name for board in boards for name in board.average.against)
    header = ["arm", "precision", "problems", "correct", "fast_1", "AMSR", "geometric mean"]
    header += [f"faster than {name}" for name in baselines]
    ordered = sorted(boards, key=lambda board: (board.precision.value, -_value(board.average.amsr)))
    lines = [
        [
            board.arm,
            board.precision.value,
            _counted(board.average),
            *_main(board.average),
            shown(board.average.geometric_mean),
            *(
                shown(board.average.against[name].faster) if name in board.average.against else "-"
                for name in baselines
            ),
        ]
        for board in ordered
    ]
    return table(header, lines)


def table(header: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    rows = [header, ["---"] * len(header), *lines]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in r) + " |" for r in rows)


def shown(interval: Interval | None) -> str:
    if interval is None:
        return "-"
    return f"{interval.value:.2f} [{interval.low:.2f}, {interval.high:.2f}]"


def describe_place(place: Place) -> str:
    machine, device = place.environment, place.device
    gpu = f"{device.name}, driver {device.driver}, CUDA {device.runtime}; " if device else ""
    return (
        f"{gpu}{machine.processor} ({machine.machine}), {machine.kernel}, Python "
        f"{machine.python}, torch {machine.torch}, {machine.compiler}"
    )


def _stamp(stamp: Stamp) -> str:
    changed = " (changed since)" if stamp.modified else ""
    lines = [f"- kernel-smith {stamp.kernel_smith}, commit {stamp.commit or 'unknown'}{changed}"]
    lines += [f"- measured on {describe_place(place)}" for place in stamp.places]
    for name, commit in stamp.suites.items():
        lines.append(f"- suite {name}" + (f", commit {commit}" if commit else ""))
    chosen = {name: value for name, value in stamp.selection.items() if value}
    if chosen:
        lines.append("- selected: " + ", ".join(f"{name} {v}" for name, v in chosen.items()))
    lines.append(f"- {_COUNTED[stamp.refused]}; seed {stamp.seed}")
    lines.append(f"- problems at once: {stamp.at_once}; lanes: {stamp.lanes}")
    lines.append(f"- {stamp.created_at:%Y-%m-%d %H:%M} UTC")
    lines.append("- intervals are of 95%; averages are those of the levels, unweighted")
    return "\n".join(lines)


def _arms(arms: Sequence[Arm]) -> str:
    lines = []
    for arm in arms:
        limits = arm.budget.model_dump(exclude_none=True)
        budget = ", ".join(f"{value:g} {name}" for name, value in limits.items())
        lines.append(
            [
                arm.name,
                arm.method,
                arm.backend,
                ", ".join(arm.models or arm.proposers) or "nobody",
                budget or "unlimited",
                ", ".join(arm.confirmation.baselines),
            ]
        )
    header = ["arm", "method", "backend", "asked", "budget per problem", "baselines"]
    return table(header, lines)


def _groups(kind: str, board: Board) -> str:
    groups = board.levels if kind == "level" else board.categories
    if kind == "level" and len(groups) > 1:
        groups = groups | {"average": board.average}
    lines = [
        [name, _counted(scores), *_main(scores), shown(scores.geometric_mean)]
        for name, scores in groups.items()
    ]
    return table([kind, "problems", "correct", "fast_1", "AMSR", "geometric mean"], lines)


def _against(board: Board) -> str:
    scores = board.average
    curve = [[f"fast_{p}", shown(share)] for p, share in scores.fast.items()]
    parts = [table(["share", ""], curve)]
    lines = [
        [name, shown(against.faster), shown(against.geometric_mean)]
        for name, against in scores.against.items()
    ]
    parts.append(table(["baseline", "significantly faster", "geometric mean"], lines))
    if scores.limit_share is not None:
        parts.append(f"Median share of the device's limit: {scores.limit_share:.0%}.")
    return "\n\n".join(parts)


def _cost(board: Board) -> str:
    cost = board.average.cost
    return (
        f"Cost: {cost.evaluations} evaluations in {cost.steps} steps, {cost.tokens:,} tokens, "
        f"${cost.dollars:.2f}, {cost.device_seconds:.0f} s of evaluation, {cost.seconds:.0f} s "
        "of work on problems."
    )


def _short_fallen(rows: Sequence[BenchRow]) -> str:
    """Return every problem that was not solved, with the reason."""
    lines = [
        [row.arm, row.problem, row.precision.value, row.status, _brief(row.why)]
        for row in rows
        if row.status != "correct"
    ]
    if not lines:
        return ""
    header = ["arm", "problem", "precision", "status", "why"]
    return "## Not solved\n\n" + table(header, lines)


def _caught(rows: Sequence[BenchRow]) -> str:
    """Tell how often each reason occurred, and each program that was refused."""
    lines = [
        [row.arm, row.problem, each.program, each.reason.value, _brief(each.message)]
        for row in rows
        for each in row.caught
    ]
    if not lines:
        return ""
    reasons = Counter(line[3] for line in lines)
    counts = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
    header = ["arm", "problem", "program", "reason", "what was seen"]
    return f"## Caught\n\n{len(lines)} programs: {counts}.\n\n" + table(header, lines)


def _problems(rows: Sequence[BenchRow]) -> str:
    baselines = dict.fromkeys((EAGER, *(name for row in rows for name in row.speedups)))
    header = ["arm", "problem", "precision", "category", "status", *baselines, "limit", "steps"]
    lines = [
        [
            row.arm,
            row.problem,
            row.precision.value,
            row.category,
            row.status if row.at_length or row.status != "correct" else "correct, not confirmed",
            *(shown(row.speedups.get(name)) for name in baselines),
            "-" if row.limit_share is None else f"{row.limit_share:.0%}",
            str(row.cost.steps),
        ]
        for row in rows
    ]
    return "## Problems\n\n" + table(header, lines)


def _main(scores: Scores) -> list[str]:
    return [shown(scores.correct), shown(scores.fast.get("1")), shown(scores.amsr)]


def _counted(scores: Scores) -> str:
    return f"{scores.problems}" + (f" ({scores.unfit} cannot be judged)" if scores.unfit else "")


def _value(interval: Interval | None) -> float:
    return 0.0 if interval is None else interval.value


def _brief(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _LONGEST_REASON else f"{line[: _LONGEST_REASON - 3]}..."
