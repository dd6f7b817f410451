"""`kernel-smith data choices`: judged edits as questions whose answer is one letter."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from kernel_smith.cli.options import Quiet
from kernel_smith.cli.output import console, print_json, print_next, progress, unwritable
from kernel_smith.errors import BadInput
from kernel_smith.records.counts import counted

if TYPE_CHECKING:
    from kernel_smith.training.choices.table import State

_TOLD_EVERY = 20  # programs


def choices(
    sources: Annotated[
        list[Path],
        typer.Argument(
            metavar="SOURCE",
            help="Tables of judged edits (.jsonl), and files that runs are kept in.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="The file to write.")],
    orders: Annotated[
        int, typer.Option(min=1, help="Ask about each program with its options in so many orders.")
    ] = 4,
    hold_out: Annotated[
        list[str] | None,
        typer.Option(help="A family of tasks to leave out. May be repeated.", metavar="FAMILY"),
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    quiet: Quiet = False,
) -> None:
    """Make questions of judged edits, to train a chooser on.

    Each asks which of the edits that were judged at a program to make.
    """
    from kernel_smith.training.choices.questions import questions_of, write_questions
    from kernel_smith.training.choices.table import rows_of

    if output.exists() and not output.is_file():  # it would be replaced, be it /dev/null
        raise unwritable(output, "it is no regular file")
    with progress(quiet or json) as report:
        states = [state for source in sources for state in _states(source, report)]
        families = {state.parent.family for state in states}
        for unknown in sorted(set(hold_out or ()) - families):
            raise BadInput(
                f"no program is of the family {unknown!r}",
                hint=f"choose from: {', '.join(sorted(families))}",
            )
        kept = [state for state in states if state.parent.family not in (hold_out or ())]

        def tell(done: int) -> None:
            if done % _TOLD_EVERY == 0:
                report(f"{done} of {len(kept)} programs")

        asked = questions_of(kept, orders, tell)
        count = write_questions(asked, output)
    if count == 0:
        output.unlink()
        raise BadInput(
            f"at none of {len(kept)} programs two edits were judged",
            hint="judge more: python benchmarks/choices_table.py TABLE.jsonl",
        )
    edits, left = rows_of(kept), sorted(families - set(hold_out or ()))
    if json:
        print_json({"questions": count, "edits": edits, "families": left, "file": str(output)})
        return
    console.print(
        f"{output}: {counted(count, 'question')} about {counted(edits, 'judged edit')} of "
        f"{counted(len(left), 'family', 'families')}"
    )
    command = ["kernel-smith", "train", "chooser", str(output), "--model", "MODEL", "-o", "chooser"]
    print_next(shlex.join(command), "train a model to choose")


def _states(source: Path, report: Callable[[str], None]) -> list[State]:
    if not source.is_file():
        raise BadInput(
            f"there is no file {source}",
            hint="name a table of `benchmarks/choices_table.py`, or a store: runs.sqlite",
        )
    if source.suffix == ".jsonl":
        from kernel_smith.training.choices.table import Table

        return list(Table(source).states.values())
    from kernel_smith.training.choices.recorded import recorded_states

    return recorded_states([source], lambda steps: report(f"{steps} steps of {source}"))
