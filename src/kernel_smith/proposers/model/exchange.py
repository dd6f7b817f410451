"""One request and its answer over HTTP, streamed: chat completions, or responses.

aiohttp is used directly: the `openai` package would bring retries, timeouts and types of its own,
all of which the client replaces, and httpx, which takes seven times as long per request.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import AsyncIterator, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any

from pydantic_core import to_json

from kernel_smith.connections import open_connections, why_unreachable
from kernel_smith.proposers.model import failures
from kernel_smith.proposers.model.config import Model
from kernel_smith.proposers.model.received import Received, error_text, garbled
from kernel_smith.records import Message

if TYPE_CHECKING:
    import aiohttp

_ERROR_BYTES = 64 << 10
_DRAIN_SECONDS = 0.2
_BYTES_PER_TOKEN_AT_MOST = 2048  # of an event with one token in it
_LINE_END = re.compile(rb"\r\n|\r|\n")  # of an event stream
_BEFORE = b"\xef\xbb\xbf \t\r\n"  # a mark of the byte order, and what keeps a connection alive


def open_http(model: Model) -> aiohttp.ClientSession:
    """Connections to the model's server; to be called on the event loop that uses them."""
    return open_connections(model.base_url, model.silence_seconds, {})


def request_body(model: Model, messages: tuple[Message, ...]) -> dict[str, Any]:
    said = [message.model_dump() for message in messages]
    body: dict[str, Any] = {"model": model.name, "stream": True}
    if model.api == "responses":
        body |= {"input": said, "max_output_tokens": model.max_tokens, "store": False}
    else:
        body |= {"messages": said, "stream_options": {"include_usage": True}}
        body[model.max_tokens_field] = model.max_tokens
    for name in ("temperature", "top_p"):
        if getattr(model, name) is not None:
            body[name] = getattr(model, name)
    return body | model.extra


async def exchange(
    http: aiohttp.ClientSession, model: Model, messages: tuple[Message, ...], received: Received
) -> None:
    """Ask once. What comes is in `received`, also if this raises a `ModelError`."""
    import aiohttp

    key = model.api_key()
    if model.api_key_env is not None and key is None:
        received.charged = False
        raise failures.KeyRefused(
            f"{model.name}: the environment variable {model.api_key_env}, which is to hold its "
            "key, is not set",
            hint=_key_hint(model, 401),
        )
    headers = {"Content-Type": "application/json"}
    if key:
        headers["Authorization"] = f"Bearer {key}"
    path = "responses" if model.api == "responses" else "chat/completions"
    url = f"{model.base_url}/{path}"
    body = to_json(request_body(model, messages))
    try:
        async with http.post(url, data=body, headers=headers, allow_redirects=False) as response:
            if response.status != 200:
                received.charged = False
                said = await _start_of(response.content.iter_any())
                raise _refusal(model, response.status, response.headers, said, key)
            await _read(response, received, model)
    except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
        received.charged = False
        raise failures.Unreachable(
            f"{model.base_url}: cannot connect ({why_unreachable(error)})",
            hint="start the server, or correct base_url",
        ) from None
    except aiohttp.ServerTimeoutError:
        raise failures.Stalled(
            f"{model.base_url}: no byte for {model.silence_seconds:g} s",
            hint="look at the server's load, or raise silence_seconds",
        ) from None
    except (aiohttp.ClientConnectionError, aiohttp.ClientPayloadError) as error:
        raise failures.Unreachable(
            f"{model.base_url}: the connection broke ({error or type(error).__name__})",
            hint="see the server's log",
        ) from None
    except (aiohttp.ClientError, ValueError) as error:
        raise garbled(str(error) or type(error).__name__) from None


async def _read(response: aiohttp.ClientResponse, received: Received, model: Model) -> None:
    left = (1 << 20) + model.max_tokens * _BYTES_PER_TOKEN_AT_MOST
    kind = response.headers.get("content-type", "").split(";")[0]
    if "html" in kind:
        received.charged = False
        raise _not_an_api(model, "a web page in place of an answer")
    whole = begun = "json" in kind
    rest = b""
    chunks = aiter(response.content.iter_any())
    async for chunk in chunks:
        left -= len(chunk)
        if left < 0:
            raise garbled("an answer without end")
        rest += chunk
        if not begun:  # not all servers say what they send
            rest = rest.lstrip(_BEFORE)
            whole, begun = rest.startswith(b"{"), bool(rest)
        if not whole:
            *lines, rest = _LINE_END.split(rest)
            _take_lines(lines, received)
        if received.done:
            if not response.content.at_eof():
                await _drain(chunks)
            return
    if whole:
        received.take(rest, "message")
    else:
        received.take_line(rest)
    if received.finish is None and not received.done:
        raise failures.Unreachable(
            f"{model.base_url}: the answer ended in the middle", hint="see the server's log"
        )


def _take_lines(lines: list[bytes], received: Received) -> None:
    for line in lines:
        if received.done:
            return
        received.take_line(line)


async def _drain(chunks: AsyncIterator[bytes]) -> None:
    """Read up to the end, where it is near: only then can the connection be used again."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_DRAIN_SECONDS):
            await _start_of(chunks)


async def _start_of(chunks: AsyncIterator[bytes]) -> bytes:
    data = b""
    async for chunk in chunks:
        data += chunk
        if len(data) >= _ERROR_BYTES:
            break
    return data


def _refusal(
    model: Model, status: int, headers: Mapping[str, str], body: bytes, key: str | None
) -> failures.ModelError:
    said = error_text(body)
    if key:
        said = said.replace(key, "***")  # some servers repeat the key that they refuse
    what = f"{model.name} at {model.base_url}: HTTP {status}: {said}"
    if status in (401, 402, 403) or b"insufficient_quota" in body:
        return failures.KeyRefused(what, hint=_key_hint(model, status))
    if status in (405, 501) or 300 <= status < 400:
        moved = f" to {headers['Location']}" if "Location" in headers else ""
        return _not_an_api(model, f"HTTP {status}{moved}")
    if status == 404:
        return failures.ModelUnknown(
            what, hint=f"GET {model.base_url}/models lists the names; base_url should end in /v1"
        )
    if status == 429:
        return failures.RateLimited(
            what,
            hint="set requests_per_minute and tokens_per_minute of the model",
            wait=retry_after(headers),
        )
    if status >= 500 or status in (408, 409, 425):
        return failures.ServerFailed(what, hint="see the server's log")
    return failures.RequestRefused(what, hint=_request_hint(said))


def _not_an_api(model: Model, what: str) -> failures.NotAnApi:
    return failures.NotAnApi(
        f"{model.base_url}/chat/completions: {what}",
        hint="correct base_url: the address of an OpenAI-compatible API, which usually ends in /v1",
    )


def _request_hint(said: str) -> str:
    if "max_completion_tokens" in said:
        return "set max_tokens_field=max_completion_tokens for this model"
    if "temperature" in said or "top_p" in said:
        return "set temperature=none and top_p=none for this model"
    return "lower max_prompt_tokens or max_tokens, or correct the model's settings"


def _key_hint(model: Model, status: int) -> str:
    if model.api_key_env is None:
        variable = f"--model {model.name}@{model.base_url},api_key_env=VARIABLE"
        return f"name the environment variable that holds the key: {variable}"
    if model.api_key() is None:
        return f"set the environment variable {model.api_key_env} to the key"
    if status in (401, 403):
        return f"the key in the environment variable {model.api_key_env} is refused: correct it"
    return f"the account of the key in {model.api_key_env} has no credit left"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Tell how long to wait, from a number of seconds or a date. None if the server does not
    say."""
    value = headers.get("Retry-After", "").strip()
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    if until.tzinfo is None:
        until = until.replace(tzinfo=UTC)
    return max(0.0, (until - datetime.now(UTC)).total_seconds())
