"""Evaluations in a file of JSON lines, so that measuring can be interrupted and taken up again.

What lies in memory is a hash and a place in the file for each. A line that was cut off by a crash
is removed when the file is opened.
"""

from __future__ import annotations

import json
from pathlib import Path

from kernel_smith.closing import Closing
from kernel_smith.errors import BadInput
from kernel_smith.records import Candidate, Evaluation, Options, Task, content_hash

_BEGINNING = b'{"key":'  # of every line; what begins otherwise is somebody else's file


class Measurings(Closing):
    """Evaluations by task, candidate, rival and options. For one process and thread."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self._path = path
        self._places: dict[bytes, int] = {}
        self._file = path.open("a+b")
        try:
            self._read()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        self._file.close()

    def get(self, key: bytes) -> Evaluation | None:
        if key not in self._places:
            return None
        self._file.seek(self._places[key])
        return Evaluation.model_validate(json.loads(self._file.readline())["evaluation"])

    def put(self, key: bytes, evaluation: Evaluation) -> None:
        """Keep an evaluation once, unless another attempt might end differently."""
        if key in self._places or evaluation.stage.fleeting:
            return
        body = {"key": key.hex(), "evaluation": evaluation.model_dump(mode="json")}
        self._file.seek(0, 2)
        self._places[key] = self._file.tell()
        self._file.write(json.dumps(body, separators=(",", ":")).encode() + b"\n")
        self._file.flush()

    def _read(self) -> None:
        self._file.seek(0)
        place = 0
        for line in iter(self._file.readline, b""):
            if not line.endswith(b"\n") and line[: len(_BEGINNING)] == _BEGINNING[: len(line)]:
                self._file.truncate(place)
                return
            self._places[self._key_of(line)] = place
            place += len(line)

    def _key_of(self, line: bytes) -> bytes:
        try:
            return bytes.fromhex(json.loads(line)["key"])
        except (ValueError, KeyError, TypeError) as error:
            raise BadInput(
                f"{self._path}: expected evaluations, one on each line, got {line[:40]!r}",
                hint="name another file, or remove this one to measure everything again",
            ) from error


def key_of(
    task: Task, candidate: Candidate, beside: Candidate | None, options: Options | None
) -> bytes:
    """Names a measuring: the same again has the same key."""
    rival = beside.content_hash if beside is not None else ""
    settings = (options or Options()).model_dump_json()
    parts = (task.content_hash, candidate.content_hash, rival, settings)
    return bytes.fromhex(content_hash(*parts))
