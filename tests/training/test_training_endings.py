"""How trainings end early, with a trainer that only pretends."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from kernel_smith.errors import Interrupted, MissingPrerequisite
from kernel_smith.training.config import RewardSettings, RlSettings, SftSettings
from kernel_smith.training.folder import Folder
from kernel_smith.training.rl import evaluation_options
from kernel_smith.training.running import Trained, common_arguments, train


def ending_with(tmp_path: Path, error: BaseException) -> Callable[[], Trained]:
    """A training that has a checkpoint of its third step, and then ends like that."""
    output = tmp_path / "out"
    settings = SftSettings(data=Path("d"), model=Path("m"), output=output)
    folder = Folder("sft", settings, "abc")
    folder.open()
    (output / "checkpoint-3").mkdir()
    (output / "checkpoint-3" / "trainer_state.json").write_text("{}")

    def fail(**others: Any) -> None:
        raise error

    state = SimpleNamespace(global_step=4)
    trainer = SimpleNamespace(train=fail, state=state, add_callback=lambda added: None)
    return lambda: train(trainer, None, settings, folder, None, print, again="AGAIN")


@pytest.mark.parametrize(
    "error",
    [
        torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2 GiB"),
        RuntimeError("DefaultCPUAllocator: can't allocate memory"),
        MemoryError(),
    ],
    ids=["device", "host", "python"],
)
def test_out_of_memory_says_what_to_lower_and_what_is_kept(
    error: BaseException, tmp_path: Path
) -> None:
    with pytest.raises(MissingPrerequisite, match="out of memory") as caught:
        ending_with(tmp_path, error)()
    assert "checkpoint-3" in caught.value.what
    assert "`micro_batch`" in caught.value.hint
    assert '"stopped"' in (tmp_path / "out" / "training.json").read_text()


def test_an_interrupt_names_the_command_that_goes_on(tmp_path: Path) -> None:
    with pytest.raises(Interrupted) as caught:
        ending_with(tmp_path, KeyboardInterrupt())()
    assert caught.value.hint == f"go on from {tmp_path / 'out' / 'checkpoint-3'}: AGAIN"


@pytest.fixture
def usual_interrupts() -> Iterator[None]:
    """Even if whoever runs the tests ignores them."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("usual_interrupts")
def test_a_second_interrupt_does_not_wait_for_the_step() -> None:
    # Only here: it imports transformers, which every worker that collects this file would wait for.
    from kernel_smith.training.stopping import Stopping

    said: list[str] = []
    with Stopping(said.append, alone=True) as stopping:
        signal.raise_signal(signal.SIGINT)
        assert stopping.asked
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert "Ctrl-C again" in said[0]


def test_other_errors_are_not_hidden(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="shapes do not fit"):
        ending_with(tmp_path, RuntimeError("shapes do not fit"))()


def test_a_step_is_made_of_micro_batches(tmp_path: Path) -> None:
    settings = SftSettings(
        data=Path("d"), model=Path("m"), output=tmp_path, micro_batch=2, schedule="constant"
    )
    arguments = common_arguments(settings, 8)
    assert arguments["per_device_train_batch_size"] == 2
    assert arguments["gradient_accumulation_steps"] == 4
    assert arguments["lr_scheduler_type"] == "constant"
    warm = settings.model_copy(update={"warmup_steps": 5})
    assert common_arguments(warm, 8)["lr_scheduler_type"] == "constant_with_warmup"


@pytest.mark.parametrize(
    ("reward", "listed"),
    [({}, False), ({"profiling": 0.5}, True), ({"reject_lazy": True}, True)],
)
def test_kernels_are_listed_only_where_the_reward_asks(
    reward: dict[str, Any], listed: bool
) -> None:
    settings = RlSettings(
        data=Path("d"), model=Path("m"), output=Path("o"), reward=RewardSettings(**reward)
    )
    options = evaluation_options(settings)
    assert options.profile is listed
    assert options.sampling.max_seconds == 1.0


def test_a_program_that_hangs_is_ended_when_the_settings_say() -> None:
    settings = RlSettings(data=Path("d"), model=Path("m"), output=Path("o"), call_seconds=0.5)
    assert evaluation_options(settings).limits.call_seconds == 0.5
