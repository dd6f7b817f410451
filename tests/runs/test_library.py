"""`kernel_smith.optimize`, with a scripted model and made-up evaluations."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import kernel_smith
from kernel_smith import api
from kernel_smith.errors import BadInput
from kernel_smith.records import Budget, Task
from kernel_smith.testing.numbers import program, speed_of
from kernel_smith.testing.openai_server import OpenAIServer, Reply
from kernel_smith.testing.trivial import TrivialEngine

ANSWER = "class ModelNew:\n    def forward(self): ...\n    speed = {}\n"


@contextlib.contextmanager
def made_up_engine(address: str | None, lanes: int) -> Iterator[TrivialEngine]:
    yield TrivialEngine(speed_of)


def test_models_that_are_named_are_asked(
    tmp_path: Path, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "open_engine", made_up_engine)
    replies = [Reply(f"```python\n{ANSWER.format(2 + n / 10)}```\n") for n in range(50)]
    with OpenAIServer(replies) as server:
        models = tmp_path / "models.toml"
        models.write_text(f'[[models]]\nname = "m"\nbase_url = "{server.base_url}"\n')
        found = kernel_smith.optimize(
            task,
            backend="cuda",  # whose kernels no compiler writes
            starts=[program(1.0).source],
            models=models,
            budget=Budget(evaluations=8),
            store=tmp_path / "runs.sqlite",
        )
    assert server.requests
    assert found.speedup > 1.9


def test_models_that_give_nothing_are_warned_of(
    tmp_path: Path, task: Task, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(api, "open_engine", made_up_engine)
    with (
        OpenAIServer([Reply("I would rather not.")]) as server,
        pytest.warns(UserWarning, match="no model gave a new program; at last: m gave"),
    ):
        found = kernel_smith.optimize(
            task,
            backend="cuda",
            starts=[program(1.5).source],
            models=f"m@{server.base_url}",
            budget=Budget(evaluations=8),
            store=tmp_path / "runs.sqlite",
            progress=False,
        )
    assert found.speedup > 1, "what was there is there"


def test_a_model_that_does_not_answer_is_an_error_at_once(tmp_path: Path, task: Task) -> None:
    with pytest.raises(BadInput, match="cannot connect"):
        kernel_smith.optimize(
            task,
            backend="cuda",
            starts=[program(1.0).source],
            models="m@http://127.0.0.1:9/v1,retries=0",
            store=tmp_path / "runs.sqlite",
        )
    assert not (tmp_path / "runs.sqlite").exists()
