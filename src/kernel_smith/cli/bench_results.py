"""`kernel-smith bench report`, `join`, `compare` and `verify`: what can be done with results."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_smith.cli.exit_codes import NEGATIVE, UNDECIDED
from kernel_smith.cli.options import EngineAddress, Lanes, Quiet
from kernel_smith.cli.output import (
    console,
    errors,
    print_json,
    print_next,
    print_text,
    progress,
)
from kernel_smith.errors import BadInput
from kernel_smith.records import Interval
from kernel_smith.records.counts import counted

if TYPE_CHECKING:
    from kernel_smith.bench.compare import Change, Comparison
    from kernel_smith.bench.verify import Verified

_FORMATS = ("text", "markdown", "csv", "json")
_MOST_NAMED = 8
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


def report(
    results: Annotated[list[Path], typer.Argument(help="Folders of results.", metavar="FOLDER")],
    format: Annotated[
        str, typer.Option("--format", "-f", help="text, markdown, csv or json.")
    ] = "text",
) -> None:
    """Print the scores of results, several as one leaderboard."""
    from kernel_smith.bench.folder import read_result
    from kernel_smith.bench.report import leaderboard, markdown
    from kernel_smith.bench.scores import boards
    from kernel_smith.bench.summary import summarise
    from kernel_smith.bench.tables import scores_csv

    if format not in _FORMATS:
        raise BadInput(f"no format is called {format!r}", hint=f"choose: {', '.join(_FORMATS)}")
    read = {str(path): read_result(path) for path in results}
    scored = []
    for path, result in read.items():
        for board in boards(result.rows, result.stamp.refused):
            name = f"{path}:{board.arm}" if len(read) > 1 else board.arm
            scored.append(board.model_copy(update={"arm": name}))
    if format == "json":
        print_json({"boards": [board.model_dump(mode="json") for board in scored]})
    elif format == "csv":
        print_text(scores_csv(scored))
    elif format == "markdown" and len(read) == 1:
        print_text(markdown(next(iter(read.values())), scored))
    elif format == "markdown":
        print_text(leaderboard(scored) + "\n")
    else:
        rows = [row for result in read.values() for row in result.rows]
        console.print(summarise(rows, scored))
        print_next(_viewed(list(read)), "look at it, as one HTML file")


def join(
    results: Annotated[list[Path], typer.Argument(help="Folders of results.", metavar="FOLDER")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The folder to write.", metavar="FOLDER")
    ],
) -> None:
    """Join results of a benchmark that was done in parts.

    Of each arm, problem and precision the row that was finished last counts, whatever it says.
    """
    from kernel_smith.bench.folder import RESULT, read_result, result_folder, write_result
    from kernel_smith.bench.joining import Joined
    from kernel_smith.bench.summary import summarise

    if (output / RESULT).exists():
        raise BadInput(f"{output}: holds a result already", hint="choose another --output")
    joined = Joined({result_folder(path): read_result(path) for path in results})
    whole = joined.result
    scored = write_result(output, whole)
    joined.copy_winners(output)
    console.print(summarise(whole.rows, scored))
    print_next(_viewed([str(output)]), "look at it, as one HTML file")


def compare(
    a: Annotated[str, typer.Argument(help="FOLDER, or FOLDER:ARM.")],
    b: Annotated[str, typer.Argument(help="The same, for the second.")],
    fail_if: Annotated[
        str | None,
        typer.Option(
            metavar="EXPR", help="Exit with 1 if this holds, e.g. 'amsr.high < 0 or lost > 0'."
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Compare two results, or two arms of one.

    Differences are those of B over A, pair by pair, with 95% intervals. EXPR may name correct,
    fast_1 and amsr, each with .a, .b, .change, .low and .high; ratio with .value, .low and .high;
    and the numbers gained, lost, faster, slower, left_out and paired.
    """
    from kernel_smith.bench.compare import compare as compare_sides
    from kernel_smith.bench.compare import pair_sides, read_side, split_side
    from kernel_smith.bench.conditions import Condition

    condition = Condition(fail_if) if fail_if is not None else None
    pairs = pair_sides(read_side(a), read_side(b))
    comparisons = [each for pair in pairs for each in compare_sides(*pair)]
    if not comparisons:
        raise BadInput(
            "the two have no precision in common", hint="run both with the same --precision"
        )
    failed = [each for each in comparisons if condition is not None and condition.holds(each)]
    if json:
        rows = [each.model_dump(mode="json") for each in comparisons]
        print_json({"comparisons": rows, "failed": bool(failed)})
    else:
        for each in comparisons:
            _print_comparison(each)
        for each in failed:
            console.print(f"fails: {fail_if} ({each.b}, {each.precision})")
        print_next(_viewed([split_side(each)[0] for each in (a, b)]), "look at them, side by side")
    raise typer.Exit(NEGATIVE if failed else 0)


def _viewed(folders: Sequence[str]) -> str:
    return shlex.join(["kernel-smith", "report", *dict.fromkeys(folders)])


def _print_comparison(found: Comparison) -> None:
    left_out = f", {len(found.left_out)} left out" if found.left_out else ""
    console.print(f"A  {found.a}\nB  {found.b}")
    console.print(f"{found.precision}: {counted(found.paired, 'problem')}{left_out}")
    for name, change in (
        ("correct", found.correct),
        ("fast_1", found.fast_1),
        ("AMSR", found.amsr),
    ):
        console.print(f"  {name:<9}{_change(change)}")
    ratio = "-" if found.ratio is None else _interval(found.ratio)
    console.print(f"  B over A {ratio} (geometric mean where both are solved)")
    for name in ("gained", "lost", "faster", "slower", "left_out"):
        named = getattr(found, name)
        if named:
            more = f", and {len(named) - _MOST_NAMED} more" if len(named) > _MOST_NAMED else ""
            shown = ", ".join(named[:_MOST_NAMED])
            console.print(f"  {name.replace('_', ' ')} {len(named)}: {shown}{more}")
    if found.other_places:
        console.print("  measured on other hardware or versions: compare speedups, not times")


def _change(change: Change | None) -> str:
    if change is None:
        return "-"
    return f"{change.a:.3f} -> {change.b:.3f}, difference {_interval(change.difference)}"


def _interval(interval: Interval) -> str:
    return f"{interval.value:.3f} [{interval.low:.3f}, {interval.high:.3f}]"


def verify(
    result: Annotated[Path, typer.Argument(help="The folder of a result.")],
    suite: Annotated[
        list[str] | None,
        typer.Option(
            help="Where the problems lie now; default: where they were. May be repeated.",
            metavar="FOLDER",
        ),
    ] = None,
    lanes: Lanes = 1,
    engine: EngineAddress = None,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Judge the winners of a result again, at full length.

    Exits with 0 if all of them stand: right, and not significantly slower than the result says.
    Exits with 1 if one does not, and 5 if the machine was too noisy to say.
    """
    from kernel_smith.bench.folder import read_result, result_folder
    from kernel_smith.bench.verify import verify as judge_again
    from kernel_smith.evaluation.engines import open_engine

    read = read_result(result)
    with progress(quiet) as report_progress, open_engine(engine, lanes) as judges:
        found = judge_again(
            read,
            result_folder(result),
            suite or (),
            judges,
            lambda each: report_progress(_verdict(each)),
        )
    if json:
        print_json({"verified": [each.model_dump(mode="json") for each in found]})
    else:
        for each in found:
            console.print(_verdict(each))
        stands = sum(each.verdict == "stands" for each in found)
        console.print(f"{stands} of {counted(len(found), 'winner')} stand")
        print_next(_viewed([str(result)]), "look at them, as one HTML file")
    if not found:
        errors.print("note: the result has no winners")
    raise typer.Exit(_code(found))


def _verdict(each: Verified) -> str:
    claimed = "-" if each.claimed is None else _interval(each.claimed)
    now = f", now {_interval(each.found)}" if each.found is not None else ""
    why = f" ({' '.join(each.why.split())[:100]})" if each.why else ""
    return f"{each.verdict}: {each.problem} ({each.arm}): was {claimed}{now}{why}"


def _code(found: list[Verified]) -> int:
    verdicts = {each.verdict for each in found}
    if verdicts & {"slower", "wrong", "missing"}:
        return NEGATIVE
    return UNDECIDED if "undecided" in verdicts else 0
