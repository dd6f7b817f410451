"""What a training writes down while it goes on, one JSON object per line.

`metrics.jsonl`: the numbers of each step. `rollouts.jsonl`: every answer and what it was worth.
`caught.jsonl`: every answer that cheated, with its program, for whoever watches for reward hacking.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from kernel_smith.records import Evaluation, Stage, content_hash
from kernel_smith.training.answers import Answer
from kernel_smith.training.rewards import Graded

METRICS, ROLLOUTS, CAUGHT = "metrics.jsonl", "rollouts.jsonl", "caught.jsonl"


class Journal:
    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def metrics(self, step: int, numbers: Mapping[str, Any]) -> None:
        kept = {name: value for name, value in numbers.items() if _is_number(value)}
        self._append(METRICS, {"step": step, **kept})

    def read_metrics(self) -> list[dict[str, Any]]:
        return list(_lines(self._folder / METRICS))

    def forget_metrics_after(self, step: int) -> None:
        """Those steps are done again, from an earlier checkpoint."""
        path = self._folder / METRICS
        kept = [line for line in _lines(path) if line["step"] <= step]
        if path.exists():
            path.write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")

    def rollout(
        self, step: int, answer: Answer, evaluation: Evaluation | None, graded: Graded
    ) -> None:
        line = {
            "step": step,
            "id": answer.question.id,
            "task": answer.question.task.name,
            "text_hash": content_hash(answer.text),
            "answer": answer.kind,
            "stage": evaluation.stage if evaluation else None,
            "reason": evaluation.reason if evaluation else None,
            "gain": graded.gain.value if graded.gain else None,
            "coverage": graded.coverage,
            "parts": graded.parts,
            "reward": graded.reward,
            "message": graded.message,
        }
        self._append(ROLLOUTS, line)
        if evaluation is not None and evaluation.stage is Stage.CHEATING:
            assert answer.program is not None
            caught = {name: line[name] for name in ("step", "id", "task", "reason", "reward")}
            message = {"message": evaluation.message, "source": answer.program.source}
            self._append(CAUGHT, caught | message)

    def _append(self, name: str, line: Mapping[str, Any]) -> None:
        with (self._folder / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line, allow_nan=False) + "\n")


def _lines(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    lines = path.read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines if line.endswith("}")]  # a crash may cut the last


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)
