"""A result on disk: one folder, to be read again, compared, and verified.

result.json            everything, as `BenchResult`
report.md              the same for people
scores.csv             a line per arm, precision and level or category
problems.csv           a line per arm and problem
curves.csv             best so far over steps
winners/ARM-PRECISION/PROBLEM.py   the winning programs, beside each its evaluation as JSON
"""

from __future__ import annotations

from pathlib import Path

from pydantic import ValidationError

from kernel_smith.bench.report import markdown
from kernel_smith.bench.rows import final_evaluation, winner_of
from kernel_smith.bench.scores import boards
from kernel_smith.bench.tables import curves_csv, problems_csv, scores_csv
from kernel_smith.errors import BadInput, reason_of, writing
from kernel_smith.records import Candidate, Evaluation
from kernel_smith.records.bench import BenchResult, BenchRow, Board, Place
from kernel_smith.runs.state import RunState

RESULT = "result.json"
_OTHER_FOLDER = "choose another folder with --output FOLDER"
_HINT = "run `kernel-smith bench SUITE --output FOLDER` first, or name its folder"


def write_result(folder: Path, result: BenchResult) -> list[Board]:
    """All but the winners; return the scores. A reader finds the old result or the new one, and no
    half."""
    scored = boards(result.rows, result.stamp.refused)
    texts = {
        "report.md": markdown(result, scored),
        "scores.csv": scores_csv(scored),
        "problems.csv": problems_csv(result.rows),
        "curves.csv": curves_csv(result.rows, result.stamp.refused),
        RESULT: result.model_dump_json(indent=1) + "\n",
    }
    with writing(folder, _OTHER_FOLDER):
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in texts.items():
            draft = folder / f".{name}.new"
            draft.write_text(text, encoding="utf-8", errors="replace")  # names of files are bytes
            draft.replace(folder / name)
    return scored


class Winners:
    """Writes each winning program as soon as it is known, and notes where it was measured."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._places: dict[str, Place] = {}

    @property
    def places(self) -> tuple[Place, ...]:
        return tuple(self._places.values())

    def keep(self, row: BenchRow, state: RunState) -> None:
        winner, final = winner_of(state), final_evaluation(state)
        if row.status == "correct" and winner is not None and final is not None:
            place = Place(environment=final.environment, device=final.device)
            self._places.setdefault(place.model_dump_json(), place)
            _write_winner(self._folder, row, winner.candidate, final)


def _write_winner(
    folder: Path, row: BenchRow, candidate: Candidate, evaluation: Evaluation
) -> None:
    path = winner_path(folder, row)
    with writing(folder, _OTHER_FOLDER):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(candidate.source, encoding="utf-8")
        path.with_suffix(".json").write_text(
            evaluation.model_dump_json(indent=1) + "\n", encoding="utf-8"
        )


def winner_path(folder: Path, row: BenchRow) -> Path:
    arm = row.arm.replace("/", "_")
    return folder / "winners" / f"{arm}-{row.precision.value}" / f"{row.problem}.py"


def read_result(path: Path) -> BenchResult:
    """From a folder or from the file in it."""
    file = result_folder(path) / RESULT
    try:
        return BenchResult.model_validate_json(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError) as error:
        what = f"{file}: cannot be read ({reason_of(error)}), expected a result"
        raise BadInput(what, hint=_HINT) from None
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(map(str, first["loc"]))
        raise BadInput(f"{file}: not a result ({where}: {first['msg']})", hint=_HINT) from None


def result_folder(path: Path) -> Path:
    return path.parent if path.name == RESULT else path
