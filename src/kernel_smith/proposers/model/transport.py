"""How messages reach a model: over HTTP, by either of OpenAI's protocols, or by a function here.

Whoever has a model in this process gives `ModelProposer` a transport by its name, and gets prompts,
repairs, caps and records as with any other:

    ModelProposer(settings, transports={"mine": Batched(generate, most=16)})
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from kernel_smith.proposers.model.config import Model
from kernel_smith.proposers.model.exchange import exchange, open_http
from kernel_smith.proposers.model.failures import ServerFailed
from kernel_smith.proposers.model.received import Received, new_received
from kernel_smith.records import Message

if TYPE_CHECKING:
    import aiohttp

Messages = tuple[Message, ...]
_GATHERING_SECONDS = 0.02


class Transport(Protocol):
    """Used on one event loop, by many requests at once."""

    def receiving(self) -> Received:
        """Return what the next answer is collected in."""

    async def send(self, messages: Messages, received: Received) -> None:
        """Ask once. What comes is in `received`, also if this raises a `ModelError`."""

    async def close(self) -> None:
        """Give up connections."""


class OverHttp:
    """A server that speaks chat completions or responses, as the model's settings say."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._http: aiohttp.ClientSession | None = None

    def receiving(self) -> Received:
        return new_received(self._model)

    async def send(self, messages: Messages, received: Received) -> None:
        if self._http is None:
            self._http = open_http(self._model)
        await exchange(self._http, self._model, messages, received)

    async def close(self) -> None:
        if self._http is not None:
            await self._http.close()


class Batched:
    """A function that answers several conversations at once, such as a model of `transformers`.

    It is called in a thread, one batch after the other; what is asked meanwhile is the next batch.
    Tokens are estimated.
    """

    def __init__(
        self, answer: Callable[[Sequence[Messages]], Sequence[str]], most: int = 16
    ) -> None:
        self._answer = answer
        self._most = most
        self._waiting: list[tuple[Messages, asyncio.Future[str]]] = []
        self._working: asyncio.Task[None] | None = None

    def receiving(self) -> Received:
        return Received()

    async def send(self, messages: Messages, received: Received) -> None:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting.append((messages, future))
        if self._working is None or self._working.done():
            self._working = asyncio.create_task(self._work())
        received.take_text(await future)

    async def close(self) -> None:
        if self._working is not None:
            self._working.cancel()

    async def _work(self) -> None:
        await asyncio.sleep(_GATHERING_SECONDS)
        while self._waiting:
            batch, self._waiting = self._waiting[: self._most], self._waiting[self._most :]
            # Who has given up waiting needs no answer.
            batch = [(messages, future) for messages, future in batch if not future.done()]
            if not batch:
                continue
            try:
                said = await asyncio.to_thread(self._answer, [messages for messages, _ in batch])
                if len(said) != len(batch):
                    raise ValueError(f"{len(said)} answers to {len(batch)} conversations")
            except Exception as error:
                failure = ServerFailed(
                    f"the model's function failed: {type(error).__name__}: {error}",
                    hint="see the function that answers",
                )
                said = []
                for _, future in batch:
                    if not future.done():
                        future.set_exception(failure)
            for (_, future), text in zip(batch, said, strict=False):
                if not future.done():
                    future.set_result(text)


class Called(Batched):
    """A function that answers one conversation."""

    def __init__(self, answer: Callable[[Messages], str]) -> None:
        super().__init__(lambda batch: [answer(messages) for messages in batch], most=1)
