"""A process that says how likely letters are: `python -m ... FOLDER`, a line of JSON each way."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from kernel_smith.errors import UserError
from kernel_smith.training.choices.reading import Reader
from kernel_smith.training.models import TO_CHOOSE, need_libraries


def main() -> None:
    # Whatever a library prints must not come between our lines.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    reader: Reader | None = None
    for line in sys.stdin:
        question = json.loads(line)
        try:
            need_libraries(TO_CHOOSE)
            reader = reader or Reader(Path(sys.argv[1]))
            (odds,) = reader.odds([question["prompt"]], [question["options"]])
            answer: dict[str, Any] = {"odds": odds}
        except UserError as error:
            answer = {"what": error.what, "hint": error.hint}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main()
