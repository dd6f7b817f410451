"""An event as a small JSON object: what is long is kept as a text, and its id takes its place."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from pydantic import TypeAdapter

from kernel_smith.records import (
    Conversation,
    Evaluation,
    Event,
    Noted,
    Remeasured,
    StepDropped,
    StepEvaluated,
    StepProposed,
)

Keep = Callable[[str, str], int]
Fetch = Callable[[int], str]


@functools.cache
def _event_type() -> TypeAdapter[Event]:
    """Made when needed: it takes longer than most commands."""
    return TypeAdapter(Event)


def encode(event: Event, keep: Keep) -> dict[str, Any]:
    """Return the event's own part. `keep(kind, text)` stores a text and answers with its id."""
    if isinstance(event, StepProposed):
        proposal = event.proposal
        body = event.model_dump(
            mode="json", exclude={"proposal": {"candidate": {"source"}, "conversation": True}}
        )
        body["proposal"]["candidate"]["source"] = keep("source", proposal.candidate.source)
        body["proposal"]["conversation"] = _encode_conversation(proposal.conversation, keep)
        return body
    if isinstance(event, StepDropped):
        body = event.model_dump(mode="json", exclude={"conversation"})
        body["conversation"] = _encode_conversation(event.conversation, keep)
        return body
    if isinstance(event, Noted):
        body = event.model_dump(mode="json", exclude={"note": {"conversation"}})
        body["note"]["text"] = keep("note", event.note.text)
        body["note"]["conversation"] = _encode_conversation(event.note.conversation, keep)
        return body
    if isinstance(event, StepEvaluated | Remeasured):
        body = event.model_dump(mode="json", exclude={"evaluation"})
        body["evaluation"] = keep("evaluation", event.evaluation.model_dump_json())
        return body
    return event.model_dump(mode="json")


def decode(body: dict[str, Any], fetch: Fetch) -> Event:
    """Return the whole event. `fetch(id)` answers with a text."""
    if body["kind"] == "step-proposed":
        proposal = body["proposal"]
        proposal["candidate"]["source"] = fetch(proposal["candidate"]["source"])
        proposal["conversation"] = _decode_conversation(proposal["conversation"], fetch)
    elif body["kind"] == "step-dropped":
        body["conversation"] = _decode_conversation(body["conversation"], fetch)
    elif body["kind"] == "noted":
        note = body["note"]
        note["text"] = fetch(note["text"])
        note["conversation"] = _decode_conversation(note["conversation"], fetch)
    elif body["kind"] in ("step-evaluated", "remeasured"):
        body["evaluation"] = Evaluation.model_validate_json(fetch(body["evaluation"]))
    return _event_type().validate_python(body)


def _encode_conversation(conversation: Conversation | None, keep: Keep) -> dict[str, Any] | None:
    if conversation is None:
        return None
    body = conversation.model_dump(mode="json", exclude={"messages", "response"})
    messages = conversation.messages
    body["messages"] = [[message.role, keep(message.role, message.content)] for message in messages]
    body["response"] = keep("response", conversation.response)
    return body


def _decode_conversation(body: dict[str, Any] | None, fetch: Fetch) -> dict[str, Any] | None:
    if body is None:
        return None
    messages = [{"role": role, "content": fetch(text)} for role, text in body["messages"]]
    return body | {"messages": messages, "response": fetch(body["response"])}
