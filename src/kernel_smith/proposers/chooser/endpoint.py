"""A model behind an OpenAI-compatible endpoint as adviser: one token, with its probabilities."""

from __future__ import annotations

import threading

from kernel_smith.errors import BadInput
from kernel_smith.proposers.chooser.adviser import Advice
from kernel_smith.proposers.chooser.letters import odds_of, question_text
from kernel_smith.proposers.chooser.options import Menu
from kernel_smith.proposers.credit import speedup_of
from kernel_smith.proposers.model.background import Background
from kernel_smith.proposers.model.client import Answer, Bill, Client
from kernel_smith.proposers.model.config import Model, Settings
from kernel_smith.proposers.model.failures import ModelError
from kernel_smith.proposers.model.ledger import Ledger
from kernel_smith.proposers.model.patience import Patience
from kernel_smith.proposers.model.preflight import check_models, demand_prices
from kernel_smith.records import Conversation, Evaluation, Message

_MOST_LISTED = 20  # tokens; the most that OpenAI's protocol knows
_IN_VAIN = 10  # answers of no use in a row, after which nobody is asked any more


class NoLetters(ModelError):
    """The answer says nothing about how likely the letters of the menu are."""


class NoLogprobs(NoLetters):
    """The endpoint tells no log-probabilities, and will not for the next question either."""

    lasting = True


class AskedEndpoint:
    """An `Adviser`. What it costs is in the conversations, and counted by the ledger."""

    def __init__(self, model: Model, ledger: Ledger) -> None:
        asked = {"logprobs": True, "top_logprobs": _MOST_LISTED} | model.extra
        # At a temperature of 1 it does not matter whether a server scales before it lists.
        update = {"max_tokens": 1, "extra": asked}
        update |= {
            name: 1.0 for name in ("temperature", "top_p") if getattr(model, name) is not None
        }
        self._model = model.model_copy(update=update)
        if ledger.caps_dollars:
            demand_prices(Settings(models=(self._model,)))
        self._background = Background()
        self._client = Client(self._model, self._background, ledger)
        self._patience = Patience(_IN_VAIN)
        self._lock = threading.Lock()

    def advise(self, menu: Menu, evaluation: Evaluation) -> Advice:
        text = question_text(menu, speedup_of(evaluation))
        messages = (Message(role="user", content=text),)
        bill, said = Bill(), ""
        try:
            answer = self._background.run(self._client.ask(messages, bill))
            said = answer.text
            odds = self._odds([option.label for option in menu.options], answer)
        except ModelError as error:
            error.conversation = self._conversation(messages, said, bill)
            with self._lock:
                failure = self._patience.after(self._model.name, error)
            failure.final = failure.lasting
            raise failure from None
        with self._lock:
            self._patience.forgive(self._model.name)
        return Advice(odds, self._conversation(messages, said, bill))

    def check(self) -> None:
        """Does the model answer, and does it tell log-probabilities?"""
        check_models(Settings(models=(self._model,)))
        question = (Message(role="user", content="Answer with one letter: A or B."),)
        try:
            answer = self._background.run(self._client.ask(question, Bill()))
            if not answer.first_token:
                raise self._no_logprobs()
        except ModelError as error:
            raise BadInput(error.what, hint=error.hint) from None

    def close(self) -> None:
        self._background.close()

    def _odds(self, labels: list[str], answer: Answer) -> list[float]:
        if not answer.first_token:
            raise self._no_logprobs()
        odds = odds_of(labels, answer.first_token)
        if odds is None:
            listed = ", ".join(map(repr, list(answer.first_token)[:5]))
            raise NoLetters(
                f"{self._model.name} would begin its answer with {listed}, "
                f"expected a letter from {labels[0]} to {labels[-1]}",
                hint="ask a model that was trained to choose, or keep it from thinking first",
            )
        return odds

    def _no_logprobs(self) -> NoLogprobs:
        return NoLogprobs(
            f"{self._model.name} at {self._model.base_url}: the answer has no log-probabilities "
            "(top_logprobs) of its first token",
            hint="serve the model where chat completions give them (vLLM, SGLang, llama.cpp), or "
            "name its folder in place of its address",
        )

    def _conversation(self, messages: tuple[Message, ...], said: str, bill: Bill) -> Conversation:
        return Conversation(
            model=self._model.name, messages=messages, response=said, usage=bill.usage
        )
