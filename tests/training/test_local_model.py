"""A real model of `transformers`, though a tiny one, is asked like any other."""

from __future__ import annotations

from concurrent.futures import wait
from pathlib import Path
from types import SimpleNamespace

import pytest
from forked import ForkedContext, may_fork

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.proposers.model import ModelProposer
from kernel_smith.proposers.model.failures import NoProgram
from kernel_smith.records import Candidate, Elite, Message, Request, Task
from kernel_smith.training import local_model
from kernel_smith.training.local_model import LocalModel

TASK = Task(name="numbers", source="class Model: pass")
PARENT = Candidate(source="class ModelNew:\n    def forward(self, x):\n        return x\n")


def request(seed: int) -> Request:
    parent = Elite(candidate=PARENT, evaluation=made_up(TASK, PARENT, 1.0))
    return Request(task=TASK, backend="cpp", parent=parent, seed=seed)


@pytest.fixture(params=["forked", pytest.param("new", marks=pytest.mark.sweep)])
def process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the model is: a new process takes ten seconds to import what it needs."""
    if request.param == "forked":
        own = SimpleNamespace(get_context=lambda kind: ForkedContext())
        monkeypatch.setattr(local_model, "multiprocessing", own)


@may_fork
@pytest.mark.slow
@pytest.mark.usefixtures("process")
def test_many_ask_and_each_gets_an_answer_with_its_tokens_counted(tiny_model: Path) -> None:
    with LocalModel(tiny_model, max_new_tokens=8) as model:
        asked = [model.ask((Message(role="user", content="a" * length),)) for length in (1, 40, 7)]
        wait(asked)
        counts = [future.result().prompt_tokens for future in asked]
        assert counts[1] - counts[0] == 39
        assert counts[2] - counts[0] == 6
        assert all(1 <= future.result().completion_tokens <= 8 for future in asked)
        # Random weights write no program: that is an answer, too, and is kept with its cost.
        settings = model.settings(templates="brief", asks_again=False, max_prompt_tokens=800)
        proposers = [
            ModelProposer(settings, transports={model.name: model.transport()}) for _ in range(2)
        ]
        answers = [each.start(request(seed)) for seed, each in enumerate(proposers)]
        for answer in answers:
            error = answer.exception()
            assert isinstance(error, NoProgram)
            said = error.conversation
            assert said is not None and said.model == str(tiny_model)
            assert said.usage.prompt_tokens > 100 and 1 <= said.usage.completion_tokens <= 8
        for proposer in proposers:
            proposer.close()


def test_a_folder_without_a_model_is_an_error_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="nothing: not a model"):
        LocalModel(tmp_path / "nothing", max_new_tokens=8)
