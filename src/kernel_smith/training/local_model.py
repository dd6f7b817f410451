"""A model of `transformers` on this machine, as somebody to ask.

    with LocalModel(folder, max_new_tokens=512) as model:
        settings = model.settings(mode="edits")
        proposer = ModelProposer(settings, transports={model.name: model.transport()})

It has a process of its own, and many runs may ask it: whatever was asked meanwhile is answered as
one batch. How questions fall into batches depends on time, so answers are not the same again.
"""

from __future__ import annotations

import asyncio
import multiprocessing
import threading
import time
from concurrent.futures import Future
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple

from kernel_smith.closing import Closing
from kernel_smith.errors import BadInput
from kernel_smith.proposers.model.config import Settings, make_settings
from kernel_smith.proposers.model.failures import ServerFailed
from kernel_smith.proposers.model.received import Received
from kernel_smith.proposers.model.transport import Messages

_MOST_AT_ONCE = 64
_WAIT_SECONDS = 0.05  # for others to ask, too
_NOWHERE = "http://127.0.0.1/v1"  # nobody is asked over a network


class Answer(NamedTuple):
    text: str
    prompt_tokens: int
    completion_tokens: int


class Drawing(NamedTuple):
    """How answers are drawn."""

    max_new_tokens: int
    temperature: float
    top_p: float


class _Writer:
    """The model itself: on the GPU if there is one."""

    def __init__(self, folder: Path, drawing: Drawing) -> None:
        from kernel_smith.training.models import load_tokenizer, need_libraries

        need_libraries(("torch", "transformers"))
        import torch
        from transformers import AutoModelForCausalLM, GenerationConfig

        on_gpu = torch.cuda.is_available()
        self._tokenizer = load_tokenizer(folder)
        self._tokenizer.padding_side = "left"
        self._model: Any = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.bfloat16 if on_gpu else torch.float32, local_files_only=True
        )
        self._model.to("cuda" if on_gpu else "cpu").eval()
        # All that could be drawn differently is named: a model may bring other habits.
        self._generation = GenerationConfig(
            **drawing._asdict(),
            do_sample=True,
            top_k=0,
            repetition_penalty=1.0,
            eos_token_id=self._tokenizer.eos_token_id,
            pad_token_id=self._tokenizer.pad_token_id,
        )

    def write(self, conversations: list[list[dict[str, str]]]) -> list[Answer]:
        import torch

        asked = self._tokenizer.apply_chat_template(
            conversations,
            add_generation_prompt=True,
            padding=True,
            return_tensors="pt",
            return_dict=True,
        ).to(self._model.device)
        with torch.inference_mode():
            said = self._model.generate(**asked, generation_config=self._generation)
        lengths = asked["attention_mask"].sum(dim=1).tolist()
        answers = said[:, asked["input_ids"].shape[1] :].tolist()
        return [self._answer(ids, length) for ids, length in zip(answers, lengths, strict=True)]

    def _answer(self, ids: list[int], prompt_tokens: int) -> Answer:
        end = self._tokenizer.eos_token_id
        length = ids.index(end) + 1 if end in ids else len(ids)
        text = self._tokenizer.decode(ids[:length], skip_special_tokens=True)
        return Answer(text, prompt_tokens, length)


def _serve(folder: Path, drawing: Drawing, asker: Connection) -> None:
    """The process of a model. It ends when nobody is there to ask."""
    writer: _Writer | None = None
    while True:
        try:
            conversations = asker.recv()
        except EOFError:
            return
        try:
            writer = writer or _Writer(folder, drawing)
            answer: list[Answer] | str = writer.write(conversations)
        except Exception as error:  # whoever asked is to know, and others are to go on
            answer = f"{type(error).__name__}: {error}"
        try:
            asker.send(answer)
        except BrokenPipeError:
            return


@dataclass(eq=False)
class _Question:
    messages: Messages
    answer: Future[Answer] = field(default_factory=Future)


class LocalModel(Closing):
    """`ask` may be called from many threads. It is loaded when it is asked for the first time."""

    def __init__(
        self, folder: Path, max_new_tokens: int, *, temperature: float = 0.6, top_p: float = 0.95
    ) -> None:
        if not (folder / "config.json").exists():
            raise BadInput(
                f"{folder}: not a model, expected a folder with config.json, weights and tokenizer",
                hint="name what save_pretrained wrote, such as OUTPUT/final of `train sft`",
            )
        self.name = str(folder)  # several trainings end in a folder of the same name
        self._max_new_tokens = max_new_tokens
        self._waiting: SimpleQueue[_Question | None] = SimpleQueue()
        processes = multiprocessing.get_context("spawn")
        self._model, far = processes.Pipe()
        drawing = Drawing(max_new_tokens, temperature, top_p)
        self._process = processes.Process(target=_serve, args=(folder, drawing, far), daemon=True)
        self._process.start()
        far.close()
        self._thread = threading.Thread(target=self._work, name=f"model {folder}", daemon=True)
        self._thread.start()

    def settings(self, **more: Any) -> Settings:
        """For a proposer that asks this model alone."""
        model = {"name": self.name, "base_url": _NOWHERE, "max_tokens": self._max_new_tokens}
        return make_settings({"models": [model], **more})

    def transport(self) -> _Transport:
        """For one proposer; several share the model."""
        return _Transport(self)

    def ask(self, messages: Messages) -> Future[Answer]:
        question = _Question(messages)
        self._waiting.put(question)
        return question.answer

    def close(self) -> None:
        """What was asked before is still answered."""
        self._waiting.put(None)
        self._thread.join()
        self._model.close()
        self._process.join()

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch, closing = self._gather(first)
            self._answer([each for each in batch if each.answer.set_running_or_notify_cancel()])
            if closing:
                return

    def _gather(self, first: _Question) -> tuple[list[_Question], bool]:
        """A batch, and whether it is the last."""
        batch = [first]
        deadline = time.monotonic() + _WAIT_SECONDS
        while len(batch) < _MOST_AT_ONCE:
            try:
                more = self._waiting.get(timeout=max(0.0, deadline - time.monotonic()))
            except Empty:
                break
            if more is None:
                return batch, True
            batch.append(more)
        return batch, False

    def _answer(self, batch: list[_Question]) -> None:
        """Those who have given up waiting are not among them."""
        if not batch:
            return
        asked = [[message.model_dump() for message in each.messages] for each in batch]
        answers = self._exchange(asked)
        for number, question in enumerate(batch):
            if isinstance(answers, str):
                question.answer.set_exception(
                    ServerFailed(f"{self.name}: {answers}", hint="see the model's folder")
                )
            else:
                question.answer.set_result(answers[number])

    def _exchange(self, conversations: list[list[dict[str, str]]]) -> list[Answer] | str:
        """The answers, or why there are none."""
        try:
            self._model.send(conversations)
            answers: list[Answer] | str = self._model.recv()
        except (EOFError, OSError):
            return "the model's process has ended"
        return answers


class _Transport:
    """A `Transport` whose tokens are counted by the model's own tokenizer."""

    def __init__(self, model: LocalModel) -> None:
        self._model = model

    def receiving(self) -> Received:
        return Received()

    async def send(self, messages: Messages, received: Received) -> None:
        answer = await asyncio.wrap_future(self._model.ask(messages))
        received.take_text(answer.text)
        received.usage = {
            "prompt_tokens": answer.prompt_tokens,
            "completion_tokens": answer.completion_tokens,
        }

    async def close(self) -> None:
        """The model serves others, too."""
