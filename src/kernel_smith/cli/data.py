"""`kernel-smith data`: from the steps of runs to data sets that a model can be trained on."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from pydantic import ValidationError

from kernel_smith.cli.options import EngineAddress, Quiet
from kernel_smith.cli.output import console, print_json, print_next, progress
from kernel_smith.errors import BadInput
from kernel_smith.records.counts import counted

if TYPE_CHECKING:
    from kernel_smith.trajectories.build import BuildResult, BuildSettings

app = typer.Typer(help="Make data sets for training.", no_args_is_help=True)

Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]

# Fields of the settings whose option has another name.
_OPTIONS = {"purpose": "for", "formats": "format"}


@app.command("build")
def build(
    stores: Annotated[
        list[Path] | None,
        typer.Argument(metavar="STORE", help="Files that runs are kept in; default: yours."),
    ] = None,
    *,
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder to write.")],
    purpose: Annotated[
        str, typer.Option("--for", help="sft: good steps to imitate; rl: steps to improve on.")
    ] = "sft",
    run: Annotated[
        list[str] | None,
        typer.Option("--run", help="Only this run. May be repeated.", metavar="NAME"),
    ] = None,
    filters: Annotated[
        list[str] | None,
        typer.Option(
            "--filter",
            help="Use this filter, and only those named; see `data filters`.",
            metavar="NAME",
        ),
    ] = None,
    formats: Annotated[
        list[str] | None,
        typer.Option(
            "--format",
            help="trl-sft, trl-rl, messages, verl, paper-sft or paper-rl. May be repeated.",
            metavar="NAME",
        ),
    ] = None,
    files: Annotated[
        str | None, typer.Option(help="jsonl or parquet; default: as the format is used.")
    ] = None,
    least_gain: Annotated[
        float, typer.Option(help="A later step is certainly this much faster than its parent.")
    ] = 1.0,
    hold_out: Annotated[
        list[str] | None,
        typer.Option(
            help="A task, family or task file to leave out. May be repeated.", metavar="NAME"
        ),
    ] = None,
    validation: Annotated[float, typer.Option(help="Share of the tasks to validate on.")] = 0.1,
    prompt: Annotated[
        str, typer.Option(help="rebuilt: without other programs; recorded: as asked; brief.")
    ] = "rebuilt",
    answer: Annotated[str, typer.Option(help="edits: SEARCH/REPLACE blocks; or full.")] = "edits",
    measure_again: Annotated[
        bool,
        typer.Option(
            "--measure-again",
            help="Time steps that may be good once more, beside parent and grandparent.",
        ),
    ] = False,
    engine: EngineAddress = None,
    max_prompt_tokens: Annotated[int, typer.Option(help="Estimated; longer is cut.")] = 32000,
    seed: Annotated[int, typer.Option(help="Decides which tasks validate.")] = 0,
    json: Json = False,
    quiet: Quiet = False,
) -> None:
    """Turn the good steps of runs into a data set.

    A card beside it says what is in it.
    """
    from kernel_smith.evaluation.engines import open_engine
    from kernel_smith.store import default_path
    from kernel_smith.trajectories.build import build as build_data

    settings = _settings(
        stores=stores or [default_path()],
        folder=output,
        purpose=purpose,
        runs=run or [],
        filters=filters or [],
        thresholds={"least_gain": least_gain},
        hold_out=hold_out or [],
        example={"prompt": prompt, "answer": answer, "max_prompt_tokens": max_prompt_tokens},
        formats=formats or [],
        files=files,
        validation=validation,
        seed=seed,
    )
    with progress(quiet) as report, ExitStack() as stack:
        judge = stack.enter_context(open_engine(engine)) if measure_again else None
        result = build_data(settings, report, judge)
    if json:
        print_json(result.model_dump(mode="json"))
    else:
        _print_result(settings, result)


@app.command("filters")
def list_filters(json: Json = False) -> None:
    """List what each filter keeps, and what it is used for."""
    from kernel_smith.trajectories.filters import FILTERS, PRESETS

    used = {name: [use for use in PRESETS if name in PRESETS[use]] for name in FILTERS}
    if json:
        rows = [
            {"name": name, "explains": each.explains, "used_for": used[name]}
            for name, each in FILTERS.items()
        ]
        print_json({"filters": rows})
        return
    for name, each in FILTERS.items():
        console.print(f"{name} ({', '.join(used[name]) or 'on demand'})")
        console.print(f"  {each.explains}")
    print_next("kernel-smith data build -o FOLDER --filter NAME", "use only those that you name")


def _settings(**fields: Any) -> BuildSettings:
    from kernel_smith.trajectories.build import BuildSettings

    try:
        return BuildSettings.model_validate(fields)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        field = str(first["loc"][-1])
        option = "--" + _OPTIONS.get(field, field).replace("_", "-")
        raise BadInput(
            f"{option} {first['input']}: {first['msg']}",
            hint="see kernel-smith data build --help",
        ) from None


def _print_result(settings: BuildSettings, result: BuildResult) -> None:
    kept = sum(result.rows.values())
    read = counted(result.steps_read, "step")
    console.print(f"{counted(kept, 'example')} of {read}", style="bold")
    for split, rows in result.rows.items():
        tasks = result.tasks[split]
        console.print(f"{split}: {counted(rows, 'row')} of {counted(tasks, 'task')}")
    _print_counts("refused by", result.refused)
    _print_counts("left out", result.left_out)
    for path in result.files:
        console.print(str(path))
    folder = shlex.quote(str(result.folder))
    if f"trl-{settings.purpose}" in {path.parent.name for path in result.files}:
        print_next(f"kernel-smith train {settings.purpose} {folder} --model MODEL -o OUT", "learn")
    else:
        print_next(f"less {folder}/README.md", "what is in it")


def _print_counts(title: str, counts: dict[str, int]) -> None:
    said: Sequence[str] = [f"{name} {count}" for name, count in counts.items() if count]
    if said:
        console.print(f"{title}: {', '.join(said)}")
