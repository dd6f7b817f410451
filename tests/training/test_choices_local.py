"""A chooser whose policy is a small model on this machine, or an adapter of one."""

from __future__ import annotations

import contextlib
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from forked import ForkedProgram, may_fork

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.proposers.base import WorkerFailed
from kernel_smith.proposers.chooser import Chooser, local, menu_at, open_adviser
from kernel_smith.proposers.chooser.letters import question_text
from kernel_smith.proposers.chooser.local import AskedLocally
from kernel_smith.proposers.credit import speedup_of
from kernel_smith.proposers.mutator.sites import machine_of
from kernel_smith.records import Elite, Proposal, Request
from kernel_smith.runs.config import own_starts
from kernel_smith.tasks import find_task
from kernel_smith.training.choices.reading import Letters, Reader
from kernel_smith.training.models import load_base, load_tokenizer

TASK = find_task("channel_histogram")
(START,) = own_starts(TASK, "cpp")
ELITE = Elite(candidate=START, evaluation=made_up(TASK, START, 0.5))
MENU = menu_at(START, machine_of(ELITE.evaluation))
QUESTION = question_text(MENU, speedup_of(ELITE.evaluation))


@pytest.fixture
def adapter(tiny_model: Path, tmp_path: Path) -> Path:
    """An adapter whose weights are large enough to change what is likely."""
    import torch
    from peft import LoraConfig, get_peft_model

    model: Any = get_peft_model(
        load_base(tiny_model, torch.float32), LoraConfig(r=2, target_modules="all-linear")
    )
    torch.manual_seed(1)
    for name, weights in model.named_parameters():
        if "lora_B" in name:
            torch.nn.init.normal_(weights, std=0.5)
    model.save_pretrained(tmp_path / "adapter")
    load_tokenizer(tiny_model).save_pretrained(tmp_path / "adapter")
    return tmp_path / "adapter"


@pytest.fixture(params=["forked", pytest.param("new", marks=pytest.mark.sweep)])
def process(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where an adviser is asked: a new process takes ten seconds to import what it needs."""
    if request.param == "forked":
        popen = SimpleNamespace(Popen=ForkedProgram, PIPE=subprocess.PIPE)
        monkeypatch.setattr(local, "subprocess", popen)


@may_fork
@pytest.mark.slow
@pytest.mark.usefixtures("process")
def test_a_run_may_draw_from_an_adapter_in_a_process_of_its_own(adapter: Path) -> None:
    request = Request(task=TASK, backend="cpp", parent=ELITE)
    with contextlib.closing(open_adviser(str(adapter))) as adviser:
        adviser.check()
        odds = adviser.advise(MENU, ELITE.evaluation).odds
        made = Chooser(adviser).propose(request)
        assert sum(odds) == pytest.approx(1)
        (expected,) = Reader(adapter).odds([QUESTION], [len(MENU.options)])
        assert odds == pytest.approx(expected, rel=1e-3)
        assert isinstance(made, Proposal)
        assert made.summary in map(str, MENU.options)

        assert isinstance(adviser, AskedLocally) and adviser._process is not None
        adviser._process.kill()
        with pytest.raises(WorkerFailed, match="process has ended") as failed:
            Chooser(adviser).propose(request)
        assert failed.value.final


def test_an_adapter_changes_the_policy_and_padding_does_not(
    tiny_model: Path, adapter: Path
) -> None:
    count = len(MENU.options)
    plain, adapted = Reader(tiny_model), Reader(adapter)
    (before,) = plain.odds([QUESTION], [count])
    (after,) = adapted.odds([QUESTION], [count])
    assert max(abs(a - b) for a, b in zip(before, after, strict=True)) > 1e-3
    _, beside = adapted.odds([QUESTION + " " * 50, QUESTION], [count, count])
    assert beside == pytest.approx(after, rel=1e-4)


def test_every_letter_is_one_token_and_the_question_ends_where_it_is_to_come(
    tiny_model: Path,
) -> None:
    tokenizer = load_tokenizer(tiny_model)
    letters = Letters(tokenizer)
    assert "".join(tokenizer.decode(letters.ids)) == "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmn"
    assert tokenizer.decode(letters.encoded("Which?")).endswith("Which?\n\n### Answer\n")


def test_an_adapter_whose_model_was_moved_says_what_to_do(adapter: Path, tmp_path: Path) -> None:
    config = adapter / "adapter_config.json"
    moved = json.loads(config.read_text()) | {"base_model_name_or_path": str(tmp_path / "gone")}
    config.write_text(json.dumps(moved))
    with pytest.raises(BadInput, match=r"was trained on .*gone, which is not there") as caught:
        Reader(adapter)
    assert "base_model_name_or_path" in caught.value.hint
