"""Answers requests, a line of JSON each on stdin: lines of progress on stdout, then a result."""

from __future__ import annotations

import contextlib
import gc
import json
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from kernel_smith.errors import UserError
from kernel_smith.inline.triton_key import know_triton_by_its_date
from kernel_smith.proposers.seed.inside.device_time import DeviceTime
from kernel_smith.proposers.seed.inside.patience import at_most
from kernel_smith.proposers.seed.recipes import find_recipe
from kernel_smith.proposers.seed.record import Seed
from kernel_smith.proposers.seed.refusal import ends_process
from kernel_smith.records import Task

_NICE = 5  # somebody may be timed meanwhile

Say = Callable[[dict[str, Any]], None]


def main() -> None:
    os.nice(_NICE)
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

    @contextlib.contextmanager
    def take_device() -> Iterator[None]:
        say({"device": True})
        sys.stdin.readline()
        try:
            yield
        finally:
            say({"device": False})

    line = first
    while line:
        if line.strip():  # else it is what somebody waited for whose patience ended meanwhile
            request = json.loads(line)
            on_gpu = request["device"] == "cuda"
            time = DeviceTime(take_device) if on_gpu else DeviceTime()
            _answer(build_seed, request, say, time)
            release()
        line = sys.stdin.readline()


def _answer(
    build: Callable[..., Seed], request: dict[str, Any], say: Say, time: DeviceTime
) -> None:
    say({"begins": True})
    try:
        with at_most(request["minutes"]):
            seed = build(
                Task.model_validate(request["task"]),
                request["device"],
                request["workloads"],
                lambda what: say({"progress": what}),
                find_recipe(request["recipe"]),
                time,
                compare=request["compare"],
            )
    except UserError as error:
        say(_refusal(error))
    except SystemExit as ended:
        say(_refusal(ends_process(f"SystemExit: {ended.code}")))
    except Exception:
        say({"defect": True})  # else it is the task's code that ends this process
        raise
    else:
        say({"seed": seed.model_dump(mode="json")})


def _refusal(error: UserError) -> dict[str, Any]:
    return {"kind": type(error).__name__, "what": error.what, "hint": error.hint}


if __name__ == "__main__":
    main()
