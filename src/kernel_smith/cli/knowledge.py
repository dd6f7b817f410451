"""`kernel-smith knowledge`: what is known about fast kernels, for people."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from kernel_smith.cli.output import console, print_json, print_next
from kernel_smith.errors import BadInput

if TYPE_CHECKING:
    from kernel_smith.knowledge import Section


def knowledge(
    topic: Annotated[
        str | None, typer.Argument(help="A guide's name; without one, all are listed.")
    ] = None,
    task: Annotated[
        str | None, typer.Option(help="What helps with this task: its name, or a task file.")
    ] = None,
    backend: Annotated[str, typer.Option(help="With --task: the dialect of the kernels.")] = "cpp",
    hardware: Annotated[
        str | None, typer.Option(help="With --task: words about the machine; default: this one.")
    ] = None,
    json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Read guides to fast kernels, and what was measured.

    What bounds a kernel, which moves pay, pitfalls, and how to read an evaluation.
    """
    if topic is not None and task is not None:
        raise BadInput(f"a topic ({topic}) and --task together", hint="name one of them")
    if task is not None:
        _show(_for_task(task, backend, hardware), json)
        if not json:
            print_next(f"kernel-smith optimize {task} --backend {backend}", "make it faster")
    elif topic is not None:
        _show(_about(topic), json)
        if not json:
            print_next("kernel-smith knowledge --task TASK", "what helps with a task, here")
    else:
        _list(json)


def _for_task(task: str, backend: str, hardware: str | None) -> tuple[Section, ...]:
    from kernel_smith.evaluation.backends import find_backend
    from kernel_smith.knowledge import sections_for, this_machine
    from kernel_smith.tasks import find_task

    find_backend(backend)
    return sections_for(find_task(task), backend, hardware or this_machine())


def _about(topic: str) -> tuple[Section, ...]:
    """Return a guide, with all that was measured about it."""
    from kernel_smith.knowledge import find_topic
    from kernel_smith.knowledge.measured import figures_about

    guide = find_topic(topic)
    return (*guide.sections, *figures_about(guide))


def _show(sections: tuple[Section, ...], as_json: bool) -> None:
    if as_json:
        print_json({"sections": [section.model_dump(mode="json") for section in sections]})
    else:
        console.print("\n\n".join(part.markdown for part in sections))


def _list(as_json: bool) -> None:
    from kernel_smith.knowledge import all_guides

    guides = all_guides()
    if as_json:
        print_json({"topics": [{"topic": each.topic, "title": each.title} for each in guides]})
        return
    width = max(len(each.topic) for each in guides)
    for each in guides:
        console.print(f"{each.topic:{width}}  {each.title}")
    print_next("kernel-smith knowledge cpp", "read one")
    print_next("kernel-smith knowledge --task row_softmax", "what helps with a task, here")
