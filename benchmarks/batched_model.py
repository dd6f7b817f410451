"""A language model that answers many runs at once, and a proposer that asks it.

    with BatchedModel(folder, max_new_tokens=512) as model:
        proposer = BatchedProposer(model)

Whoever asks waits; what was asked meanwhile is answered in one batch. Each model has a process of
its own, so that several do not wait for the same interpreter. How questions fall into batches
depends on time, so answers are not the same again.
"""

from __future__ import annotations

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
from kernel_smith.errors import InternalError
from kernel_smith.proposers.base import parent_of
from kernel_smith.proposers.model.config import Model, Settings
from kernel_smith.proposers.model.failures import NoProgram
from kernel_smith.proposers.model.parse import Program, parse_answer
from kernel_smith.proposers.model.prompt import Prompts
from kernel_smith.records import (
    Candidate,
    Conversation,
    Evaluation,
    Message,
    Proposal,
    Request,
    Usage,
)

_MOST_AT_ONCE = 64
_WAIT_SECONDS = 0.05  # for others to ask, too

# The same words as in training data with brief prompts and edits; nobody is asked over a network.
PROMPTS = Settings(
    models=(Model(name="batched", base_url="http://127.0.0.1/v1"),),
    mode="edits",
    templates="brief",
    max_prompt_tokens=8000,
)

Messages = list[dict[str, str]]


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

        need_libraries()
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

    def write(self, conversations: list[Messages]) -> list[Answer]:
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
    writer = _Writer(folder, drawing)
    while True:
        try:
            conversations = asker.recv()
        except EOFError:
            return
        try:
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


class BatchedModel(Closing):
    """`ask` may be called from many threads. Loading goes on while this returns."""

    def __init__(
        self, folder: Path, max_new_tokens: int, *, temperature: float = 0.6, top_p: float = 0.95
    ) -> None:
        self.name = str(folder)
        self._waiting: SimpleQueue[_Question | None] = SimpleQueue()
        processes = multiprocessing.get_context("spawn")
        self._model, far = processes.Pipe()
        drawing = Drawing(max_new_tokens, temperature, top_p)
        self._process = processes.Process(target=_serve, args=(folder, drawing, far), daemon=True)
        self._process.start()
        far.close()
        self._thread = threading.Thread(target=self._work, name=f"model {folder}", daemon=True)
        self._thread.start()

    def ask(self, messages: tuple[Message, ...]) -> Answer:
        question = _Question([message.model_dump() for message in messages])
        self._waiting.put(question)
        return question.answer.result()

    def close(self) -> None:
        """What was asked before is still answered."""
        self._waiting.put(None)
        self._thread.join()
        self._model.close()
        self._process.join()

    def _work(self) -> None:
        while (first := self._waiting.get()) is not None:
            batch, closing = self._gather(first)
            answers = self._exchange([question.messages for question in batch])
            for number, question in enumerate(batch):
                if isinstance(answers, str):
                    question.answer.set_exception(InternalError(f"{self.name}: {answers}"))
                else:
                    question.answer.set_result(answers[number])
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

    def _exchange(self, conversations: list[Messages]) -> list[Answer] | str:
        """The answers, or why there are none."""
        try:
            self._model.send(conversations)
            answers: list[Answer] | str = self._model.recv()
        except (EOFError, OSError):
            return "the model's process has ended"
        return answers


class BatchedProposer:
    """A `Writer` that shows the model a parent and its verdict, as its training did, and asks
    once. Other programs, failures and lessons of the run are not told."""

    name = "model"

    def __init__(self, model: BatchedModel, settings: Settings = PROMPTS) -> None:
        self._model = model
        self._prompts = Prompts(settings)

    def propose(self, request: Request) -> Proposal:
        messages = self._prompts.build(request.model_copy(update={"context": ()})).messages
        begin = time.monotonic()
        answer = self._model.ask(messages)
        usage = Usage(
            prompt_tokens=answer.prompt_tokens,
            completion_tokens=answer.completion_tokens,
            seconds=time.monotonic() - begin,
            requests=1,
        )
        said = Conversation(
            model=self._model.name, messages=messages, response=answer.text, usage=usage
        )
        parent = parent_of(request).candidate
        parsed = parse_answer(answer.text, parent.source)
        if not isinstance(parsed, Program):
            error = NoProgram(parsed.reason, hint="train the model, or ask another")
            error.conversation = said
            raise error
        return Proposal(
            candidate=Candidate(backend=parent.backend, source=parsed.source, name=parent.name),
            proposer=self.name,
            parents=(parent.content_hash,),
            summary=parsed.summary,
            details={"mode": parsed.mode},
            conversation=said,
        )

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        """Its weights stay as they are."""

    def close(self) -> None:
        """The model serves others, too."""
