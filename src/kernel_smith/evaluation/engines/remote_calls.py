"""Asking an evaluation service over HTTP, with patience, and what its refusals mean."""

from __future__ import annotations

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import aiohttp

from kernel_smith.connections import open_connections, why_unreachable
from kernel_smith.errors import BadInput, InternalError, MissingPrerequisite

_TIMEOUT_SECONDS = 30.0
_FIRST_DELAY = 0.1
_LONGEST_DELAY = 5.0
_CONNECTIONS = 16
_SHORT_PATIENCE = 5.0
_NO_SERVICE = "make sure that the address is that of a kernel-smith service"

UNREACHABLE = (aiohttp.ClientError, TimeoutError)
"""What is raised where no answer comes, or none to the end."""

# Somebody between us and the service, or the service itself, says: not now.
_NOT_NOW = frozenset({429, 502, 503, 504})


class QueueIsFull(MissingPrerequisite):
    """The service takes no more jobs for now."""


@dataclass(frozen=True)
class Answer:
    """What the service said, to the end."""

    status: int
    reason: str
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> Any:
        """Raises `ValueError` where it is something else."""
        return json.loads(self.body)


class Calls:
    """To be used on one event loop, and closed there."""

    def __init__(self, url: str, token: str | None, patience: float) -> None:
        self.url = _checked(url)
        self.patience = patience
        self.last_contact = time.monotonic()
        self._headers = _headers(token)
        self._opened: aiohttp.ClientSession | None = None

    @property
    def _http(self) -> aiohttp.ClientSession:
        if self._opened is None:
            self._opened = open_connections(
                self.url, _TIMEOUT_SECONDS, self._headers, most=_CONNECTIONS
            )
        return self._opened

    async def close(self) -> None:
        if self._opened is not None:
            await self._opened.close()

    async def ask(
        self,
        method: str,
        path: str,
        *,
        body: str | None = None,
        patience: float | None = None,
        wait_while_full: bool = True,
    ) -> Answer:
        """The answer. What may pass is asked again until patience is over; the rest is raised."""
        end = time.monotonic() + (self.patience if patience is None else patience)
        delay = _FIRST_DELAY
        while True:
            wait = 0.0
            try:
                response = await self.once(method, path, body)
                self.check(response)
                return response
            except NotNow as error:
                if error.full and not wait_while_full:
                    raise error.trouble from None
                trouble, wait = error.trouble, error.seconds
            except UNREACHABLE as error:
                trouble = self.unreachable(error)
            # Jitter, so that those who waited do not come back all at once.
            wait += delay * random.uniform(0.5, 1.0)
            delay = min(delay * 2, _LONGEST_DELAY)
            if time.monotonic() + wait > end:
                raise trouble
            await asyncio.sleep(wait)

    async def once(self, method: str, path: str, body: str | None = None) -> Answer:
        """Whatever is answered. Raises one of `UNREACHABLE`."""
        headers = {"Content-Type": "application/json"} if body is not None else None
        async with self._http.request(
            method, self.url + path, data=body, headers=headers, allow_redirects=False
        ) as response:
            answer = await _whole(response)
        self.last_contact = time.monotonic()
        return answer

    @asynccontextmanager
    async def listen(self, path: str, silence_seconds: float) -> AsyncIterator[AsyncIterator[str]]:
        """Follow an answer without an end, line by line. Raises what a refusal means, or one of
        `UNREACHABLE`, also after so many seconds without a word."""
        timeout = aiohttp.ClientTimeout(total=None, sock_read=silence_seconds)
        async with self._http.get(
            self.url + path, timeout=timeout, allow_redirects=False
        ) as response:
            if response.status != HTTPStatus.OK:
                self.check(await _whole(response))
            yield self._lines(response)

    async def _lines(self, response: aiohttp.ClientResponse) -> AsyncIterator[str]:
        try:
            async for line in response.content:
                self.last_contact = time.monotonic()
                yield line.decode(errors="replace")
        except ValueError as error:  # a line without an end
            raise aiohttp.ClientPayloadError(str(error)) from None

    async def capacity(self) -> int:
        """How many candidates the service evaluates at once."""
        # Whoever asks that wants to know it now.
        answer = await self.ask("GET", "/v1/capacity", patience=_SHORT_PATIENCE)
        try:
            return int(answer.json()["lanes"])
        except (ValueError, KeyError, TypeError):
            raise self._no_service() from None

    async def health(self) -> dict[str, Any]:
        try:
            ready, health = await self.once("GET", "/readyz"), await self.once("GET", "/healthz")
            return {**health.json(), "ready": ready.status == HTTPStatus.OK}
        except UNREACHABLE as error:
            raise self.unreachable(error) from None
        except (ValueError, TypeError):
            raise self._no_service() from None

    def _no_service(self) -> BadInput:
        return BadInput(f"{self.url} answers like something else", hint=_NO_SERVICE)

    def check(self, response: Answer) -> None:
        """Raise what a refusal means."""
        status = response.status
        if status < 400:
            return
        what, hint = _told(response)
        if status in _NOT_NOW:
            raise NotNow(self.url, what, status, _retry_after(response))
        if status in (401, 403):
            hint = "give the token that `kernel-smith serve tokens add` showed"
        elif status == HTTPStatus.NOT_FOUND:
            raise BadInput(f"{self.url} says: {what}", hint=_NO_SERVICE)
        elif status >= 500:
            raise InternalError(f"the service at {self.url} failed: {what}")
        raise BadInput(f"the service at {self.url} refuses: {what}", hint=hint)

    def unreachable(self, error: Exception) -> MissingPrerequisite:
        return MissingPrerequisite(
            f"the service at {self.url} does not answer ({why_unreachable(error)})",
            hint="start it with `kernel-smith serve`, or mend the address",
        )


class NotNow(Exception):
    """A refusal that may pass, and what to tell if it does not."""

    def __init__(self, url: str, what: str, status: int, seconds: float) -> None:
        self.full = status == HTTPStatus.TOO_MANY_REQUESTS
        self.seconds = seconds
        kind = QueueIsFull if self.full else MissingPrerequisite
        hint = "ask again later, or ask another service"
        self.trouble = kind(f"the service at {url} takes no jobs for now: {what}", hint=hint)


async def _whole(response: aiohttp.ClientResponse) -> Answer:
    body = await response.read()
    return Answer(response.status, response.reason or "", response.headers, body)


def _told(response: Answer) -> tuple[str, str]:
    try:
        body: Any = response.json()
        return str(body["error"]), str(body["hint"])
    except (ValueError, KeyError, TypeError):
        status = f"{response.status} {response.reason}".strip()
        return (
            f"HTTP status {status}",
            "make sure that the address is that of a kernel-smith service",
        )


def _retry_after(response: Answer) -> float:
    try:
        return max(0.0, float(response.headers.get("Retry-After", "0")))
    except ValueError:
        return 0.0


def _headers(token: str | None) -> dict[str, str]:
    if token is None:
        return {}
    if not token.isascii() or not token.isprintable() or not token.strip():
        hint = "give the one that `kernel-smith serve tokens add` showed"
        raise BadInput("this cannot be a token", hint=hint)
    return {"Authorization": f"Bearer {token.strip()}"}


def _checked(url: str) -> str:
    try:
        parsed = urlsplit(url)
        usable = parsed.scheme in ("http", "https") and bool(parsed.hostname) and parsed.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise BadInput(
            f"{url!r} is not the address of a service",
            hint="give one like http://127.0.0.1:8300",
        )
    return url.rstrip("/")
