"""Ways to a model: OpenAI's two protocols, a function, and a function that answers many at once."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.proposers.model import Model, ModelProposer, Settings
from kernel_smith.proposers.model.failures import ModelError, Truncated
from kernel_smith.proposers.model.received import ReceivedResponse
from kernel_smith.proposers.model.transport import Batched, Called, Messages, Transport
from kernel_smith.records import Candidate, Elite, Request, Task
from kernel_smith.testing.openai_server import OpenAIServer, Reply

TASK = Task(name="t", source="class Model: ...")
PARENT = "class ModelNew:\n    def forward(self, x):\n        return x + 1\n"
CHILD = PARENT.replace("x + 1", "1 + x")
ANSWER = f"Change: swap.\n\n```python\n{CHILD}```\n"


def request(seed: int = 0) -> Request:
    own = Candidate(source=PARENT + "\n# more\n" * seed)
    parent = Elite(candidate=own, evaluation=made_up(TASK, own, 1.0))
    return Request(task=TASK, backend="cpp", parent=parent, seed=seed)


@contextlib.contextmanager
def proposer(
    url: str = "http://127.0.0.1/v1", transport: Transport | None = None, **fields: Any
) -> Iterator[ModelProposer]:
    settings = Settings(models=(Model(name="m", base_url=url, retries=0, **fields),))
    transports = None if transport is None else {"m": transport}
    made = ModelProposer(settings, transports=transports)
    try:
        yield made
    finally:
        made.close()


def events(*parts: dict[str, Any]) -> Reply:
    return Reply(raw="".join(f"data: {json.dumps(part)}\n\n" for part in parts).encode())


def delta(text: str, kind: str = "output_text") -> dict[str, Any]:
    return {"type": f"response.{kind}.delta", "delta": text}


def ended(status: str = "completed") -> dict[str, Any]:
    usage = {
        "input_tokens": 300,
        "output_tokens": 90,
        "input_tokens_details": {"cached_tokens": 200},
    }
    return {"type": f"response.{status}", "response": {"status": status, "usage": usage}}


def test_a_function_is_a_model() -> None:
    heard: list[Messages] = []

    def answer(messages: Messages) -> str:
        heard.append(messages)
        return ANSWER

    with proposer(transport=Called(answer)) as asked:
        made = asked.propose(request())
    assert made.candidate.source == CHILD
    assert [message.role for message in heard[0]] == ["system", "user"]
    assert made.conversation is not None and made.conversation.usage.completion_tokens > 0
    assert made.details["usage_estimated"] is True


def test_what_is_asked_together_is_answered_in_batches_and_each_gets_its_own() -> None:
    sizes: list[int] = []

    def answer(batch: Sequence[Messages]) -> list[str]:
        sizes.append(len(batch))
        return [ANSWER.replace("1 + x", f"{m[1].content.count('# more')} + x") for m in batch]

    with proposer(transport=Batched(answer, most=4)) as asked, ThreadPoolExecutor(10) as threads:
        made = list(threads.map(lambda seed: asked.propose(request(seed)), range(10)))
    assert sum(sizes) == 10 and max(sizes) <= 4 and len(sizes) < 10
    assert [each.candidate.source for each in made] == [
        CHILD.replace("1 + x", f"{seed} + x") for seed in range(10)
    ]


def test_a_function_that_fails_is_a_model_that_failed() -> None:
    def answer(messages: Messages) -> str:
        raise RuntimeError("out of memory")

    with proposer(transport=Called(answer)) as asked, pytest.raises(ModelError) as caught:
        asked.propose(request())
    assert "RuntimeError: out of memory" in caught.value.what


def test_the_responses_protocol_is_spoken() -> None:
    reply = events(delta("I think.", "reasoning_summary_text"), delta(ANSWER), ended())
    with OpenAIServer([reply]) as server, proposer(server.base_url, api="responses") as asked:
        made = asked.propose(request())
    assert made.candidate.source == CHILD
    body = server.requests[0]
    assert [said["role"] for said in body["input"]] == ["system", "user"]
    assert "messages" not in body and body["max_output_tokens"] == 16384
    assert made.conversation is not None
    assert made.conversation.usage.completion_tokens == 90, "as the server counts"
    assert made.conversation.response.startswith("<think>\nI think.")


def test_a_response_that_is_cut_off_or_failed_is_told() -> None:
    cut = events(delta("Change: ..."), ended("incomplete"))
    error = {"type": "response.failed", "response": {"error": {"message": "overloaded"}}}
    replies = [cut, events(error)]
    with OpenAIServer(replies) as server, proposer(server.base_url, api="responses") as asked:
        with pytest.raises(Truncated):
            asked.propose(request())
        with pytest.raises(ModelError, match="overloaded"):
            asked.propose(request())


def test_a_response_that_is_not_streamed_is_read() -> None:
    content = [{"type": "output_text", "text": ANSWER}]
    whole = {
        "status": "completed",
        "output": [{"type": "message", "content": content}],
        "usage": {"input_tokens": 300, "output_tokens": 90},
    }
    received = ReceivedResponse(1000)
    received.take(json.dumps(whole).encode(), "message")
    assert received.text == ANSWER and received.finish == "stop"
    assert received.usage is not None and received.usage["prompt_tokens"] == 300
