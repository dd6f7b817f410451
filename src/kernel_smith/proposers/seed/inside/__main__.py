"""Answers one request on stdin: lines of JSON on stdout, progress first, the result last."""

from __future__ import annotations

import gc
import json
import os
import sys
from typing import Any

from kernel_smith.errors import UserError
from kernel_smith.proposers.seed.inside.patience import at_most
from kernel_smith.records import Task


def main() -> None:
    request = json.load(sys.stdin)
    # No part of the compiler is garbage: it is not searched, neither during its import nor later.
    gc.disable()
    from kernel_smith.proposers.seed.inside.build import build_seed

    gc.freeze()
    gc.enable()
    # Whatever the task or the compiler prints must not come between our lines.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)

    def say(message: dict[str, Any]) -> None:
        print(json.dumps(message), file=answers, flush=True)

    try:
        with at_most(request["minutes"]):
            seed = build_seed(
                Task.model_validate(request["task"]),
                request["device"],
                request["workloads"],
                lambda what: say({"progress": what}),
            )
    except UserError as error:
        say({"kind": type(error).__name__, "what": error.what, "hint": error.hint})
    else:
        say({"seed": seed.model_dump(mode="json")})


if __name__ == "__main__":
    main()
