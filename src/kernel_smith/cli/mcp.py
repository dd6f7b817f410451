"""`kernel-smith mcp`: the door for coding agents, over standard input and output."""

from __future__ import annotations

from functools import partial
from importlib.util import find_spec
from typing import Annotated

import typer

from kernel_smith.cli.options import EngineAddress, StoreFile
from kernel_smith.errors import MissingPrerequisite


def mcp(
    engine: EngineAddress = None,
    evaluations: Annotated[
        int, typer.Option(min=1, help="Programs that may be judged in this session.")
    ] = 200,
    patience: Annotated[
        float, typer.Option(min=1, help="Seconds that one evaluation may take on this machine.")
    ] = 600.0,
    store: StoreFile = None,
    skill: Annotated[
        bool, typer.Option("--skill", help="Print a skill file for coding agents, and end.")
    ] = False,
) -> None:
    """Serve coding agents over the Model Context Protocol (MCP).

    On standard input and output, as an agent starts it: kernel-smith mcp --skill says how.
    """
    from kernel_smith.agents.skill import skill_text

    if skill:
        print(skill_text(), end="")
        return
    if find_spec("mcp") is None:
        raise MissingPrerequisite(
            "the package mcp is not installed", hint="pip install 'kernel-smith[mcp]'"
        )
    from kernel_smith.agents.door import Door
    from kernel_smith.agents.server import make_server
    from kernel_smith.evaluation import engines
    from kernel_smith.store import default_path

    opener = partial(engines.open_engine, engine, 1, patience)
    door = Door(store or default_path(), opener, evaluations)
    try:
        make_server(door).run("stdio")
    finally:
        door.close()
