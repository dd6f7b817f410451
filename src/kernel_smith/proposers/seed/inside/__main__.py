"""Answers requests, a line of JSON each on stdin: lines of progress on stdout, then a result."""

from __future__ import annotations

import gc
import json
import os
import sys
from collections.abc import Callable
from typing import Any

from kernel_smith.errors import UserError
from kernel_smith.inline.triton_key import know_triton_by_its_date
from kernel_smith.proposers.seed.inside.patience import at_most
from kernel_smith.proposers.seed.recipes import find_recipe
from kernel_smith.proposers.seed.record import Seed
from kernel_smith.records import Task

Say = Callable[[dict[str, Any]], None]


def main() -> None:
    first = sys.stdin.readline()
    # No part of the compiler is garbage: it is not searched, neither during its import nor later.
    gc.disable()
    know_triton_by_its_date()
    from kernel_smith.proposers.seed.inside.build import build_seed
    from kernel_smith.proposers.seed.inside.memory import release

    gc.freeze()
    gc.enable()
    # Whatever the task or the compiler prints must not come between our lines.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(message: dict[str, Any]) -> None:
        print(json.dumps(message), file=answers, flush=True)

    line = first
    while line:
        _answer(build_seed, json.loads(line), say)
        release()
        line = sys.stdin.readline()


def _answer(build: Callable[..., Seed], request: dict[str, Any], say: Say) -> None:
    try:
        with at_most(request["minutes"]):
            seed = build(
                Task.model_validate(request["task"]),
                request["device"],
                request["workloads"],
                lambda what: say({"progress": what}),
                find_recipe(request["recipe"]),
            )
    except UserError as error:
        say({"kind": type(error).__name__, "what": error.what, "hint": error.hint})
    else:
        say({"seed": seed.model_dump(mode="json")})


if __name__ == "__main__":
    main()
