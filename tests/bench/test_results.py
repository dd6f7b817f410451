"""Results on disk: what is written is what is read, what people read, and what is judged again."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from bench_makers import PROGRAM, Bench
from bench_rows import interval, result, row

from kernel_smith.bench.arms import Protocol, make_plans
from kernel_smith.bench.folder import read_result, winner_path, write_result
from kernel_smith.bench.report import leaderboard, markdown
from kernel_smith.bench.scores import boards
from kernel_smith.bench.summary import summarise
from kernel_smith.bench.verify import verify
from kernel_smith.errors import BadInput
from kernel_smith.records import Reason
from kernel_smith.records.bench import BenchResult, CaughtProgram, CurvePoint
from kernel_smith.testing.trivial import TrivialEngine

CAUGHT = CaughtProgram(program="theirs.py", reason=Reason.DECOY_KERNEL, message="a | decoy")
ROWS = [
    row("a", 2.0, speedups={"eager": interval(2.0), "compile": interval(1.5)}, at_length=True),
    row("b", status="refused", why="the output is constant", level="level2"),
    row("c", status="hung", why="did not end"),
    row("d", caught=(CAUGHT,), why="no program to start from was accepted"),
    row("e", 3.0, curve=(CurvePoint(step=2, speedup=2.9),), category="scan"),
]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    written = result(ROWS)
    write_result(tmp_path / "r", written)
    assert read_result(tmp_path / "r") == read_result(tmp_path / "r" / "result.json") == written
    files = {path.name for path in (tmp_path / "r").iterdir()}
    assert files == {"result.json", "report.md", "scores.csv", "problems.csv", "curves.csv"}


def test_tables_hold_what_the_result_does(tmp_path: Path) -> None:
    write_result(tmp_path, result(ROWS))
    with (tmp_path / "scores.csv").open() as file:
        scores = list(csv.DictReader(file))
    average = scores[0]
    assert (average["group"], average["problems"], average["unfit"]) == ("average", "5", "2")
    assert float(average["amsr"]) == pytest.approx((5 / 4 + 0) / 2)
    groups = [(line["group"], line["name"]) for line in scores[1:]]
    assert groups == [
        ("level", "level1"),
        ("level", "level2"),
        ("category", "scan"),
        ("category", "softmax"),
    ]
    with (tmp_path / "problems.csv").open() as file:
        problems = {line["problem"]: line for line in csv.DictReader(file)}
    assert problems["a"]["compile"] == "1.5"
    assert (problems["b"]["status"], problems["b"]["compile"]) == ("refused", "")
    assert (tmp_path / "curves.csv").read_text().splitlines()[1].startswith("islands,strict,2,5,")


def test_the_report_says_what_fell_short_and_what_was_caught() -> None:
    text = markdown(result(ROWS), boards(ROWS, "count"))
    assert "| islands | b | strict | refused | the output is constant |" in text
    assert "| islands | c | strict | hung | did not end |" in text
    assert "1 programs: decoy-kernel 1." in text
    assert "theirs.py | decoy-kernel | a \\| decoy |" in text
    assert "problems that cannot be judged count as not solved" in text


def test_a_leaderboard_puts_the_best_first_and_precisions_apart() -> None:
    rows = [
        row("a", 2.0, arm="low"),
        row("a", 3.0, arm="high"),
        row("a", 9.0, arm="t", precision="tf32"),
    ]
    lines = leaderboard(boards(rows, "count")).splitlines()[2:]
    assert [line.split(" | ")[0] for line in lines] == ["| high", "| low", "| t"]


def test_a_terminal_of_80_columns_shows_all_of_it() -> None:
    long = "a name that is far longer than what a column of a table has room for"
    rows = [*ROWS, row(long, 1.0, level=long, category=long), row("x" * 90, why="y" * 300)]
    text = summarise(rows, boards(rows, "count"))
    assert max(len(line) for line in text.splitlines()) <= 80
    assert "not solved: refused 1, hung 1, incorrect 2" in text
    assert "caught: decoy-kernel 1" in text


@pytest.mark.parametrize("text", [None, "{", '{"rows": []}'])
def test_what_is_no_result_is_told(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "result.json").write_text(text)
    with pytest.raises(BadInput, match=r"result\.json"):
        read_result(tmp_path)


# ---------------------------------------------------------------- judging again


@pytest.fixture
def solved(bench: Bench, tmp_path: Path) -> BenchResult:
    """Three problems, each solved with a speedup of 2."""
    programs = tmp_path / "programs"
    programs.mkdir()
    for number in (1, 2, 3):
        (programs / f"{number}_p.py").write_text(PROGRAM.format(2.0) + f"# {number}\n")
    protocol = Protocol(backend="cpp")
    rows = bench.run([], protocol, told=[str(programs)], engine=TrivialEngine(lambda _: 2.0))
    (plan,) = make_plans([], [str(programs)], protocol)
    suites = {str(tmp_path / "suite"): None}
    made = result(rows, suites=suites).model_copy(update={"arms": (plan.describe(),)})
    write_result(bench.folder, made)
    return made


def verdicts(
    bench: Bench, solved: BenchResult, speed: float | Reason, suite: str = ""
) -> list[str]:
    engine = TrivialEngine(lambda _: speed)
    found = verify(solved, bench.folder, [suite] if suite else [], engine)
    return [each.verdict for each in found]


def test_winners_stand_are_slower_or_are_wrong(bench: Bench, solved: BenchResult) -> None:
    assert verdicts(bench, solved, 2.0) == ["stands"] * 3
    assert verdicts(bench, solved, 5.0) == ["stands"] * 3
    assert verdicts(bench, solved, 1.9) == ["slower"] * 3
    assert verdicts(bench, solved, Reason.WRONG_VALUES) == ["wrong"] * 3
    assert verdicts(bench, solved, Reason.TOO_NOISY) == ["undecided"] * 3


def test_one_that_looks_slower_is_measured_once_more(bench: Bench, solved: BenchResult) -> None:
    """The machine may have been busy. One that is wrong is wrong."""
    speeds = iter([1.0, 1.0, 1.0, 2.0, 1.0, 2.0])
    engine = TrivialEngine(lambda _: next(speeds))
    found = verify(solved, bench.folder, [], engine)
    assert [each.verdict for each in found] == ["stands", "slower", "stands"]
    outcomes = iter([Reason.WRONG_VALUES, 2.0, 2.0])
    found = verify(solved, bench.folder, [], TrivialEngine(lambda _: next(outcomes)))
    assert [each.verdict for each in found] == ["wrong", "stands", "stands"]


def test_a_winner_or_a_problem_that_is_not_the_same_is_missing(
    bench: Bench, solved: BenchResult, tmp_path: Path
) -> None:
    winner_path(bench.folder, solved.rows[0]).write_text("class ModelNew: ...")
    winner_path(bench.folder, solved.rows[1]).unlink()
    problem = tmp_path / "suite" / "level1" / "3_p.py"
    problem.write_text(problem.read_text() + "# changed\n")
    assert verdicts(bench, solved, 2.0) == ["missing"] * 3


def test_schemas_describe_results(tmp_path: Path) -> None:
    """Read by others without this program."""
    from jsonschema import validate

    from kernel_smith.records.schema_files import schema_texts

    schema = json.loads(schema_texts()["bench_result.json"])
    validate(result(ROWS).model_dump(mode="json"), schema)
