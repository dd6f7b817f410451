"""Both trainings with a tiny model: what they write, that they go on, and how they end early."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import pytest

from kernel_smith.errors import BadInput, Interrupted, MissingPrerequisite
from kernel_smith.records import Candidate, Evaluation, Options, Reason, Task
from kernel_smith.testing.trivial import TrivialEngine
from kernel_smith.training import environment as environment_module
from kernel_smith.training import running, sft
from kernel_smith.training.config import Lora, RewardSettings, RlSettings, SftSettings
from kernel_smith.training.curves import draw_curves
from kernel_smith.training.models import load_tokenizer
from kernel_smith.training.rl import train_rl
from kernel_smith.training.sft import train_sft

WriteRows = Callable[[str, list[dict[str, Any]]], Path]

SMALL: dict[str, Any] = {
    "sequence_length": 512,
    "save_every": 1,
    "micro_batch": 2,
    "gradient_checkpointing": False,
    "lora": Lora(rank=2),
}


def sft_settings(data: Path, model: Path, output: Path, **more: Any) -> SftSettings:
    given = {**SMALL, "steps": 1, "batch": 2, **more}
    return SftSettings(data=data, model=model, output=output, **given)


def rl_settings(data: Path, model: Path, output: Path, **more: Any) -> RlSettings:
    given = {**SMALL, "steps": 1, "entries": 1, "samples": 2, "max_new_tokens": 24, **more}
    return RlSettings(data=data, model=model, output=output, **given)


def lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def answer_of(folder: Path) -> str:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    model = AutoModelForCausalLM.from_pretrained(folder)
    asked = tokenizer.apply_chat_template(
        [{"role": "user", "content": "hello"}],
        add_generation_prompt=True,
        return_tensors="pt",
        return_dict=True,
    )
    written = model.generate(**asked, max_new_tokens=8, min_new_tokens=8, do_sample=False)
    return str(tokenizer.decode(written[0]))


def test_sft_writes_a_model_that_answers_and_goes_on_where_it_stopped(
    tiny_model: Path,
    write_rows: WriteRows,
    sft_rows: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(running, "draw_curves", draw_curves)
    data, output = write_rows("sft", sft_rows), tmp_path / "out"
    said: list[str] = []
    trained = train_sft(sft_settings(data, tiny_model, output), said.append)
    assert trained.steps == 1
    assert "### Answer" in answer_of(trained.final)
    assert (trained.final / "adapter" / "adapter_config.json").is_file()
    assert (output / "curves.png").stat().st_size > 1000
    info = json.loads((trained.final / "training.json").read_text())
    assert info["state"] == "done"
    assert {"torch", "trl", "transformers"} <= info["versions"].keys()
    card = (trained.final / "README.md").read_text()
    assert f"base_model: {tiny_model.name}\n" in card
    assert str(tiny_model) not in card and info["data_sha256"] in card
    assert not (output / "README.md").exists()
    assert any("step 1 of 1: loss" in line for line in said)

    trained = train_sft(sft_settings(data, tiny_model, output, steps=2), said.append)
    assert trained.steps == 2
    assert any("going on from" in line and "checkpoint-1" in line for line in said)
    assert [line["step"] for line in lines(output / "metrics.jsonl") if "loss" in line] == [1, 2]

    with pytest.raises(BadInput, match=r"learning_rate was 0\.0001, is 0\.5"):
        train_sft(sft_settings(data, tiny_model, output, learning_rate=0.5), said.append)


def press_ctrl_c_in_the_second_step(what: str) -> None:
    if what.startswith("step 1 of"):
        signal.raise_signal(signal.SIGINT)


def test_the_step_in_which_a_training_is_interrupted_is_kept(
    tiny_model: Path,
    write_rows: WriteRows,
    sft_rows: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    drawn: list[list[dict[str, Any]]] = []
    monkeypatch.setattr(running, "draw_curves", lambda metrics, _: drawn.append(metrics))
    data, output = write_rows("sft", sft_rows), tmp_path / "out"
    settings = sft_settings(data, tiny_model, output, steps=3, save_every=100)
    with pytest.raises(Interrupted) as caught:
        train_sft(settings, press_ctrl_c_in_the_second_step, again="AGAIN")
    assert caught.value.hint == f"go on from {output / 'checkpoint-2'}: AGAIN"
    (curves,) = drawn  # also of a training that was ended early
    assert [x["step"] for x in curves if "loss" in x] == [1, 2]
    assert train_sft(settings, print).steps == 3
    assert [x["step"] for x in lines(output / "metrics.jsonl") if "loss" in x] == [1, 2, 3]


def test_only_answers_count_in_the_loss_of_sft(
    tiny_model: Path, write_rows: WriteRows, sft_rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    settings = sft_settings(write_rows("sft", sft_rows), tiny_model, tmp_path / "out")
    tokenizer = load_tokenizer(tiny_model)
    trainer = sft._trainer(settings, tokenizer, sft_rows, [], lambda what: None)
    batch = next(iter(trainer.get_train_dataloader()))
    for tokens, labels in zip(batch["input_ids"], batch["labels"], strict=True):
        assert tokenizer.decode(tokens[labels != -100]) == "y = 2 * x<end>"


def test_rows_that_are_too_long_are_left_out_and_counted(
    tiny_model: Path, write_rows: WriteRows, sft_rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    sft_rows[0]["completion"][0]["content"] = "y" * 600
    said: list[str] = []
    data = write_rows("sft", sft_rows)
    train_sft(sft_settings(data, tiny_model, tmp_path / "out", lora=False), said.append)
    assert "left out 1 of 4 rows: over 512 tokens" in said
    settings = sft_settings(data, tiny_model, tmp_path / "other", sequence_length=20)
    with pytest.raises(BadInput, match="all 4 rows are longer than 20 tokens"):
        train_sft(settings, said.append)


class Scripted(TrivialEngine):
    """Also remembers what it was asked to time beside."""

    def __init__(self, judge: Any) -> None:
        super().__init__(judge)
        self.beside: list[str] = []

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        assert beside is not None
        self.beside.append(beside.source)
        return super().submit(task, candidate, options, beside=beside)


@pytest.fixture
def written_answers(monkeypatch: pytest.MonkeyPatch, honest_source: str) -> None:
    """What the tiny model writes is no program; in its place come two, one better than one."""
    from kernel_smith.training import judged_trainer

    programs = [honest_source.replace("y[i]", "y[0 + i]"), honest_source.replace("[i]", "[i + 0]")]
    count = iter(range(1000))

    def text_of(completion: object) -> str:
        return f"```python\n{programs[next(count) % 2]}\n```"

    monkeypatch.setattr(judged_trainer, "text_of", text_of)


def speed(candidate: Candidate) -> float:
    if "[0 + i]" in candidate.source:
        return 6.0
    return 4.0 if "[i + 0]" in candidate.source else 2.0


@pytest.mark.parametrize("at_once", [None, 1])
@pytest.mark.usefixtures("written_answers")
def test_rl_uses_the_judges_gains_as_leave_one_out_advantages(
    tiny_model: Path,
    write_rows: WriteRows,
    rl_rows: list[dict[str, Any]],
    honest_source: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    at_once: int | None,
) -> None:
    from trl import GRPOTrainer

    from kernel_smith.training.judged_trainer import JudgedTrainer

    used: list[list[float]] = []
    compute = JudgedTrainer._generate_and_score_completions

    def spy(self: Any, inputs: Any) -> Any:
        output = compute(self, inputs)
        used.append(output["advantages"].tolist())
        return output

    monkeypatch.setattr(JudgedTrainer, "_generate_and_score_completions", spy)
    happened: list[str] = []
    generate = GRPOTrainer._generate_single_turn

    def written(self: Any, *arguments: Any, **others: Any) -> Any:
        happened.append("written")
        return generate(self, *arguments, **others)

    def judged(candidate: Candidate) -> float:
        if candidate.source != honest_source:
            happened.append("judged")
        return speed(candidate)

    monkeypatch.setattr(GRPOTrainer, "_generate_single_turn", written)
    engine = Scripted(judged)
    settings = rl_settings(
        write_rows("rl", rl_rows),
        tiny_model,
        tmp_path / "out",
        advantage="leave-one-out",
        generate_at_once=at_once,
    )
    trained = train_rl(settings, engine, lambda what: None)
    assert engine.beside == [honest_source] * 2
    begun = ["written", "judged"]  # the first answer is with the judge before the next is written
    assert happened == (begun * 2 if at_once else [*begun, "judged"])
    # Three and two times as fast as the parent, to within 1%; each less the other.
    assert used == [pytest.approx([0.99, -0.99])]
    rollouts = lines(tmp_path / "out" / "rollouts.jsonl")
    assert [line["reward"] for line in rollouts] == pytest.approx([0.99 * 3 - 1, 0.99 * 2 - 1])
    assert [line["gain"] for line in rollouts] == [3.0, 2.0]
    assert trained.metrics["reward"] == pytest.approx(0.99 * 2.5 - 1)
    assert trained.metrics["faster"] == 1.0
    assert {"seconds/writing", "seconds/waiting_for_the_judge"} <= trained.metrics.keys()
    assert "### Answer" in answer_of(trained.final)


def test_answers_that_are_no_program_cost_no_evaluation(
    tiny_model: Path, write_rows: WriteRows, rl_rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    engine = TrivialEngine(speed)
    data = write_rows("rl", rl_rows)
    settings = rl_settings(data, tiny_model, tmp_path / "out", lora=False, entries=2)
    trained = train_rl(settings, engine, lambda what: None)
    assert engine.evaluated == []
    assert trained.metrics["reward"] == 0.0
    assert {line["answer"] for line in lines(tmp_path / "out" / "rollouts.jsonl")} == {"unparsed"}


@pytest.mark.usefixtures("written_answers")
def test_cheats_are_written_down_and_earn_the_penalty(
    tiny_model: Path, write_rows: WriteRows, rl_rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    engine = TrivialEngine(
        lambda candidate: Reason.DECOY_KERNEL if "[0 + i]" in candidate.source else 2.0
    )
    data = write_rows("rl", rl_rows)
    reward = RewardSettings(cheating=-1.0)
    settings = rl_settings(data, tiny_model, tmp_path / "out", reward=reward)
    trained = train_rl(settings, engine, lambda what: None)
    (caught,) = lines(tmp_path / "out" / "caught.jsonl")
    assert caught["reason"] == "decoy-kernel"
    assert caught["reward"] == -1.0
    assert "[0 + i]" in caught["source"]
    assert trained.metrics["cheating"] == 0.5


class Leaving(TrivialEngine):
    """Gone after so many evaluations, until it is back."""

    def __init__(self, evaluations: int) -> None:
        super().__init__(speed)
        self.left = evaluations

    def submit(self, *arguments: Any, **others: Any) -> Future[Evaluation]:
        if self.left > 0:
            self.left -= 1
            return super().submit(*arguments, **others)
        future: Future[Evaluation] = Future()
        future.set_exception(MissingPrerequisite("no service", hint="start it again"))
        return future


@pytest.mark.usefixtures("written_answers")
def test_a_training_whose_engine_goes_away_keeps_its_steps_and_goes_on_later(
    tiny_model: Path,
    write_rows: WriteRows,
    rl_rows: list[dict[str, Any]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(environment_module, "_FIRST_PAUSE", 0.01)
    output = tmp_path / "out"
    settings = rl_settings(
        write_rows("rl", rl_rows),
        tiny_model,
        output,
        steps=2,
        save_every=100,
        patience_minutes=0.0005,
    )
    engine = Leaving(2)
    with pytest.raises(MissingPrerequisite, match="no service") as caught:
        train_rl(settings, engine, lambda what: None, again="kernel-smith train rl ...")
    assert caught.value.exit_code == 3
    assert "start it again; then go on from" in caught.value.hint
    assert "checkpoint-1: kernel-smith train rl ..." in caught.value.hint
    assert json.loads((output / "training.json").read_text())["state"] == "stopped"

    engine.left = 100
    said: list[str] = []
    trained = train_rl(settings, engine, said.append)
    assert trained.steps == 2
    assert any("checkpoint-1" in line for line in said)
    assert engine.left == 98  # the first step was not done again


def test_fewer_questions_than_a_step_takes_are_refused(
    tiny_model: Path, write_rows: WriteRows, rl_rows: list[dict[str, Any]], tmp_path: Path
) -> None:
    settings = rl_settings(write_rows("rl", rl_rows), tiny_model, tmp_path / "out", entries=5)
    with pytest.raises(BadInput, match="4 questions are too few: a step takes 5"):
        train_rl(settings, TrivialEngine(speed), lambda what: None)
