"""What has come of an answer so far: text, thoughts, how it ended, and the server's count."""

from __future__ import annotations

import json
from typing import Any

from kernel_smith.proposers.model.failures import Garbled, ModelError, ServerFailed

# No tokenizer's average token is this long: a server beyond it ignores the limit it was given.
_CHARACTERS_PER_TOKEN_AT_MOST = 16


class Received:
    """Collects an answer, streamed or whole. Keeps what came if the rest never does."""

    def __init__(self, max_tokens: int) -> None:
        self._texts: list[str] = []
        self._thoughts: list[str] = []
        self._room = max_tokens * _CHARACTERS_PER_TOKEN_AT_MOST
        self.finish: str | None = None
        self.usage: dict[str, Any] | None = None
        self.charged = True
        self.done = False

    @property
    def text(self) -> str:
        return "".join(self._texts)

    @property
    def thoughts(self) -> str:
        return "".join(self._thoughts)

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
        try:
            content = json.loads(data)
        except ValueError:
            raise garbled(f"not JSON: {_shown(data)}") from None
        if not isinstance(content, dict):
            raise garbled(f"not an object: {_shown(data)}")
        if content.get("error"):
            raise ServerFailed(
                f"the server reported an error: {error_text(data)}", hint="see the server's log"
            )
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
        if not isinstance(text, str) or not isinstance(thought, str):
            raise garbled(f"content that is not text: {_shown(data)}")
        if text:
            self._texts.append(text)
        if thought:
            self._thoughts.append(thought)
        self._room -= len(text) + len(thought)
        if isinstance(choice.get("finish_reason"), str):
            self.finish = choice["finish_reason"]
        if self._room < 0:
            self.finish, self.done = "length", True


def garbled(what: str) -> ModelError:
    return Garbled(
        f"the server's answer is not of the protocol: {what}",
        hint="check that base_url leads to an OpenAI-compatible API and ends in /v1",
    )


def error_text(data: bytes) -> str:
    """What a server says about an error, from whichever of the usual places."""
    try:
        content = json.loads(data)
    except ValueError:
        return _shown(data)
    if isinstance(content, dict):
        error = content.get("error", content)
        if isinstance(error, dict):
            error = error.get("message") or error
        return str(error)[:300]
    return _shown(data)


def _shown(data: bytes) -> str:
    return repr(data[:120].decode(errors="replace"))
