"""What has come of an answer so far: text, thoughts, how it ended, and the server's count."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable
from typing import Any

from kernel_smith.proposers.model.config import Model
from kernel_smith.proposers.model.failures import Garbled, ModelError, ServerFailed

# No tokenizer's average token is this long: a server beyond it ignores the limit it was given.
_CHARACTERS_PER_TOKEN_AT_MOST = 16
_NOT_JSON = object()
_THOUGHTS = ("response.reasoning_text.delta", "response.reasoning_summary_text.delta")


class Received:
    """Collects an answer, streamed or whole. Keeps what came if the rest never does."""

    def __init__(self, max_tokens: int | None = None) -> None:
        """`max_tokens`: where a server may ignore its limit."""
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        most = math.inf if max_tokens is None else max_tokens
        self._room = most * _CHARACTERS_PER_TOKEN_AT_MOST
        self.finish: str | None = None
        self.usage: dict[str, Any] | None = None
        self.first_token: dict[str, float] = {}
        """What the answer could have begun with, and the log-probability of each; empty: the server
        was not asked, or does not tell."""
        self.charged = True
        self.done = False

    @property
    def text(self) -> str:
        return _joined(self._texts)

    @property
    def thoughts(self) -> str:
        return _joined(self._thoughts)

    def take_line(self, line: bytes) -> None:
        """One line of an event stream."""
        if not line.startswith(b"data:"):
            return  # comments keep a connection alive; other fields mean nothing here
        data = line[5:].strip()
        if data == b"[DONE]":
            self.done = True
        elif data:
            self.take(data, "delta")

    def take(self, data: bytes, part: str) -> None:
        """One JSON object: an event of a stream (`delta`) or a whole answer (`message`)."""
        content = _object(data)
        if isinstance(content.get("usage"), dict):
            self.usage = content["usage"]
        choices = content.get("choices") or []
        if not isinstance(choices, list) or (not choices and part == "message"):
            raise garbled(f"no choices: {_shown(data)}")
        if choices:
            self._take_choice(choices[0], part, data)

    def _take_choice(self, choice: Any, part: str, data: bytes) -> None:
        said = choice.get(part) or {} if isinstance(choice, dict) else None
        if not isinstance(said, dict):
            raise garbled(f"no {part}: {_shown(data)}")
        # Servers that separate thoughts from the answer use one of two names for them.
        thought = said.get("reasoning_content") or said.get("reasoning") or ""
        text = said.get("content") or ""
        if isinstance(text, list):
            text, thought = _of_parts(text)
        if not isinstance(text, str) or not isinstance(thought, str):
            raise garbled(f"content that is not text: {_shown(data)}")
        if isinstance(choice.get("finish_reason"), str):
            self.finish = choice["finish_reason"]
        if not self.first_token:
            self.first_token = _first_token(choice.get("logprobs"))
        self._add(text, thought)

    def take_text(self, text: str) -> None:
        """A whole answer, from somebody who sends nothing else."""
        self._add(text, "")
        self.finish, self.done = "stop", True

    def _add(self, text: str, thought: str) -> None:
        if text:
            self._texts.append(text)
        if thought:
            self._thoughts.append(thought)
        self._room -= len(text) + len(thought)
        if self._room < 0:
            self.finish, self.done = "length", True


class ReceivedResponse(Received):
    """The same by the responses protocol, whose events have types."""

    def take(self, data: bytes, part: str) -> None:
        content = _object(data)
        if part == "message":
            self._take_whole(content, data)
            return
        kind, delta = content.get("type"), content.get("delta")
        if kind == "response.output_text.delta" and isinstance(delta, str):
            self._add(delta, "")
        elif kind in _THOUGHTS and isinstance(delta, str):
            self._add("", delta)
        elif kind in ("response.completed", "response.incomplete"):
            self._end(content.get("response"), data)
        elif kind in ("error", "response.failed"):
            raise _reported(json.dumps(content.get("response", content)).encode())

    def _take_whole(self, content: dict[str, Any], data: bytes) -> None:
        output = content.get("output")
        if not isinstance(output, list):
            raise garbled(f"no output: {_shown(data)}")
        for item in (each for each in output if isinstance(each, dict)):
            for piece in item.get("content") or item.get("summary") or ():
                text = piece.get("text") if isinstance(piece, dict) else None
                if isinstance(text, str):
                    said = item.get("type") == "message"
                    self._add(text if said else "", "" if said else text)
        self._end(content, data)

    def _end(self, response: Any, data: bytes) -> None:
        if not isinstance(response, dict):
            raise garbled(f"no response: {_shown(data)}")
        usage = response.get("usage")
        if isinstance(usage, dict):  # in the words of chat completions
            self.usage = {
                "prompt_tokens": usage.get("input_tokens"),
                "completion_tokens": usage.get("output_tokens"),
                "prompt_tokens_details": usage.get("input_tokens_details"),
            }
        cut = response.get("status") == "incomplete" or self.finish == "length"
        self.finish, self.done = "length" if cut else "stop", True


def _joined(pieces: Iterable[str]) -> str:
    """Join the pieces of a text. Some servers send the two halves of a character (of UTF-16) in
    two pieces; a half without the other can be neither stored nor sent on, and is replaced."""
    return "".join(pieces).encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _of_parts(parts: list[Any]) -> tuple[str, str]:
    """Text and thoughts of content in parts, as Mistral's reasoning models send it."""
    found = [part for part in parts if isinstance(part, dict)]
    thought = [_of_parts(part["thinking"])[0] for part in found if _holds(part, "thinking", list)]
    return "".join(part["text"] for part in found if _holds(part, "text", str)), "".join(thought)


def _holds(part: dict[str, Any], name: str, kind: type) -> bool:
    return isinstance(part.get(name), kind)


def _first_token(logprobs: Any) -> dict[str, float]:
    """Return the likeliest first tokens of `logprobs`, as chat completions have them."""
    content = logprobs.get("content") if isinstance(logprobs, dict) else None
    first = content[0] if isinstance(content, list) and content else None
    listed = first.get("top_logprobs") if isinstance(first, dict) else None
    found = [each for each in listed or () if isinstance(each, dict)]
    return {
        each["token"]: float(each["logprob"])
        for each in found
        if isinstance(each.get("token"), str) and isinstance(each.get("logprob"), int | float)
    }


def new_received(model: Model) -> Received:
    """Return what an answer by a model's protocol is collected in."""
    kind = ReceivedResponse if model.api == "responses" else Received
    return kind(model.max_tokens)


def _object(data: bytes) -> dict[str, Any]:
    content = _parsed(data)
    if content is _NOT_JSON:
        raise garbled(f"not JSON: {_shown(data)}")
    if not isinstance(content, dict):
        raise garbled(f"not an object: {_shown(data)}")
    if content.get("error"):
        raise _reported(data)
    return content


def _parsed(data: bytes) -> Any:
    """Return what JSON says, with replacements for bytes that are not UTF-8; `_NOT_JSON` if it
    is none."""
    try:
        return json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):  # a thousand brackets are too deep
        return _NOT_JSON


def _reported(data: bytes) -> ModelError:
    return ServerFailed(
        f"the server reported an error: {error_text(data)}", hint="see the server's log"
    )


def garbled(what: str) -> ModelError:
    return Garbled(
        f"the server's answer is not of the protocol: {what}",
        hint="check that base_url leads to an OpenAI-compatible API and ends in /v1",
    )


def error_text(data: bytes) -> str:
    """Return what a server says about an error, from whichever of the usual places."""
    content = _parsed(data)
    if isinstance(content, dict):
        error = content.get("error", content)
        if isinstance(error, dict):
            error = error.get("message") or error
        return _joined(str(error))[:300]
    return _shown(data)


def _shown(data: bytes) -> str:
    return repr(data[:120].decode(errors="replace"))
