"""The whole way once: a run, data sets of its steps, SFT, RL, and the model proposes in a run."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.client import HTTPException
from multiprocessing.context import ForkProcess
from pathlib import Path
from urllib.request import urlopen

import pytest
from forked import forked, may_fork, run_module

import kernel_smith
from kernel_smith.evaluation.engines import open_engine
from kernel_smith.records import Budget, Event, Options, StepDropped, Task
from kernel_smith.training.config import RlSettings, SftSettings
from kernel_smith.training.rl import train_rl
from kernel_smith.training.sft import train_sft
from kernel_smith.trajectories.build import BuildSettings, build
from kernel_smith.trajectories.examples import ExampleSettings

SECONDS_TO_START = 240  # most of it imports, and other tests may take the cores


class Enough(Exception):
    def __init__(self, event: StepDropped) -> None:
        super().__init__()
        self.event = event


def until_something_is_dropped(event: Event) -> None:
    if isinstance(event, StepDropped):
        raise Enough(event)


def quietly(said: str) -> None: ...


@contextmanager
def served(model: Path) -> Iterator[str]:
    """The address of a server that users have, too."""
    for _ in range(3):  # until it is ready another program may have taken its port
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        command = ["transformers.cli.transformers", "serve", str(model)]
        process = forked(run_module, [*command, "--host", "127.0.0.1", "--port", str(port)])
        try:
            if answers(process, port):
                yield f"http://127.0.0.1:{port}/v1"
                return
        finally:
            process.terminate()
            process.join(20)
    raise AssertionError("the server does not start")


def answers(process: ForkProcess, port: int) -> bool:
    """Waits until it does; False if it has ended, as it does without its port."""
    deadline = time.monotonic() + SECONDS_TO_START
    while process.is_alive():
        assert time.monotonic() < deadline
        try:
            urlopen(f"http://127.0.0.1:{port}/health", timeout=5).close()
            return True
        except (OSError, HTTPException):
            time.sleep(0.2)
    return False


@may_fork
@pytest.mark.slow
@pytest.mark.usefixtures("quick_runs")
def test_from_a_run_to_a_model_that_proposes(
    tiny_model: Path, small_task: Task, honest_source: str, quick: Options, tmp_path: Path
) -> None:
    store = tmp_path / "runs.sqlite"
    kernel_smith.optimize(
        small_task,
        starts=[honest_source],
        proposers=["mutator"],
        budget=Budget(evaluations=3),
        store=store,
    )
    for purpose in ("sft", "rl"):
        settings = BuildSettings(
            stores=(store,),
            folder=tmp_path / purpose,
            purpose=purpose,
            filters=("correct",),
            example=ExampleSettings(prompt="brief", answer="full"),
            validation=0,
        )
        assert build(settings, quietly).rows["train"] >= 1
    size = {"steps": 1, "sequence_length": 16384, "lora": False}
    sft = SftSettings(
        data=tmp_path / "sft", model=tiny_model, output=tmp_path / "sft-model", batch=1, **size
    )
    learnt = train_sft(sft, quietly)
    rl = RlSettings(
        data=tmp_path / "rl",
        model=learnt.final,
        output=tmp_path / "rl-model",
        entries=1,
        samples=2,
        max_new_tokens=8,
        **size,
    )
    with open_engine(None) as engine:
        practised = train_rl(rl, engine, quietly, options=quick)
    assert practised.steps == 1
    card = (practised.final / "README.md").read_text()
    assert "base_model: sft-model/final\n" in card and "- reward: " in card
    assert "## Filters" in (practised.final / "DATA.md").read_text()

    with served(practised.final) as address:
        models = tmp_path / "models.toml"
        models.write_text(
            f'templates = "brief"\n[[models]]\nname = "{practised.final}"\n'
            f'base_url = "{address}"\nmax_tokens = 8\n'
        )
        with pytest.raises(Enough) as told:
            kernel_smith.optimize(
                small_task,
                starts=[honest_source],
                preset="paper",
                models=models,
                budget=Budget(seconds=SECONDS_TO_START),
                store=store,
                on_event=until_something_is_dropped,
            )
    event = told.value.event
    assert event.proposer == "model"
    assert event.conversation is not None, event.why
    assert event.conversation.usage.completion_tokens, "eight bytes, which are no program"
