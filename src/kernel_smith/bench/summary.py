"""A result in plain lines for a terminal of 80 columns."""

from __future__ import annotations

import textwrap
from collections import Counter
from collections.abc import Iterator, Sequence

from kernel_smith.bench.report import MADE_UP, shown
from kernel_smith.records.bench import BenchRow, Board
from kernel_smith.records.counts import counted

_WIDTH = 80
_NAME, _CELL = 20, 19
_WIDE_NAME, _NUMBER = 32, 10
_MOST_LISTED = 12
_MOST_CATEGORIES = 30


def summarise(rows: Sequence[BenchRow], boards: Sequence[Board]) -> str:
    """Scores of every arm, then what was not solved, and what was caught."""
    lines = [MADE_UP, ""] if any(board.made_up for board in boards) else []
    for board in boards:
        lines += [*_board(board), ""]
    lines += _not_solved(rows)
    lines += _caught(rows)
    return "\n".join(lines).rstrip()


def _board(board: Board) -> Iterator[str]:
    scores = board.average
    unfit = f"; {scores.unfit} cannot be judged" if scores.unfit else ""
    yield (
        f"{board.arm} ({board.precision.value}): {scores.solved} of {scores.problems} problems "
        f"solved{unfit}"
    )
    yield _line("", "correct", "fast_1", "AMSR")
    groups = board.levels if len(board.levels) == 1 else board.levels | {"average": scores}
    for name, each in groups.items():
        yield _line(name, shown(each.correct), shown(each.fast.get("1")), shown(each.amsr))
    yield _line("against", "faster for certain", "geometric mean")
    for name, against in scores.against.items():
        yield _line(name, shown(against.faster), shown(against.geometric_mean))
    if 1 < len(board.categories) <= _MOST_CATEGORIES:
        yield _category("category", "problems", "solved", "AMSR")
        for name, each in board.categories.items():
            yield _category(name, str(each.problems), str(each.solved), shown(each.amsr))
    cost = scores.cost
    model = f", {cost.tokens:,} tokens, ${cost.dollars:.2f}" if cost.tokens else ""
    evaluations = counted(cost.evaluations, "evaluation")
    yield f"cost: {evaluations}, {cost.device_seconds:.0f} s of evaluating{model}"
    if scores.limit_share is not None:
        yield f"median share of the device's limit: {scores.limit_share:.0%}"


def _line(name: str, *cells: str) -> str:
    shortened = name if len(name) < _NAME else f"{name[: _NAME - 4]}..."
    return (f"  {shortened:<{_NAME}}" + "".join(f"{cell:<{_CELL}}" for cell in cells)).rstrip()


def _category(name: str, problems: str, solved: str, amsr: str) -> str:
    shortened = name if len(name) < _WIDE_NAME else f"{name[: _WIDE_NAME - 4]}..."
    return f"  {shortened:<{_WIDE_NAME}}{problems:<{_NUMBER}}{solved:<{_NUMBER}}{amsr}"


def _not_solved(rows: Sequence[BenchRow]) -> Iterator[str]:
    left = [row for row in rows if row.status != "correct"]
    if not left:
        return
    counts = Counter(row.status for row in left)
    shown_counts = ", ".join(f"{status} {count}" for status, count in counts.items())
    yield _wrapped(f"not solved: {shown_counts}", indent="")
    for row in left[:_MOST_LISTED]:
        yield _wrapped(f"{row.status}: {row.problem} ({row.arm}): {row.why}")
    if len(left) > _MOST_LISTED:
        yield f"  and {len(left) - _MOST_LISTED} more: see report.md"


def _caught(rows: Sequence[BenchRow]) -> Iterator[str]:
    found = [(row, each) for row in rows for each in row.caught]
    if not found:
        return
    counts = Counter(each.reason.value for _, each in found)
    reasons = ", ".join(f"{reason} {count}" for reason, count in counts.most_common())
    yield _wrapped(f"caught: {reasons}", indent="")
    for row, each in found[:_MOST_LISTED]:
        yield _wrapped(f"{each.reason.value}: {row.problem}, {each.program}: {each.message}")
    if len(found) > _MOST_LISTED:
        yield f"  and {len(found) - _MOST_LISTED} more: see report.md"


def _wrapped(text: str, indent: str = "  ") -> str:
    """Two lines at most."""
    flat = " ".join(text.split())
    lines = textwrap.wrap(flat, _WIDTH - 4, break_on_hyphens=False)
    if len(lines) > 2:
        lines = [lines[0], f"{lines[1][: _WIDTH - 7]}..."]
    return "\n".join(f"{'    ' if number else indent}{line}" for number, line in enumerate(lines))
