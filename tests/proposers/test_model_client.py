"""Asking a model over HTTP: a real server on loopback that behaves well, and badly."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from kernel_smith.proposers.model import failures
from kernel_smith.proposers.model.background import Background
from kernel_smith.proposers.model.client import Answer, Bill, Client
from kernel_smith.proposers.model.config import Model
from kernel_smith.proposers.model.exchange import retry_after
from kernel_smith.proposers.model.ledger import Ledger
from kernel_smith.records import Message
from kernel_smith.testing.openai_server import OpenAIServer, Reply

QUESTION = (Message(role="system", content="Be brief."), Message(role="user", content="Hello?"))

MakeClient = Callable[..., Client]


@pytest.fixture
def make_client() -> Iterator[MakeClient]:
    background = Background()

    def make(url: str, ledger: Ledger | None = None, **changes: Any) -> Client:
        fields: dict[str, Any] = {
            "name": "tiny",
            "base_url": url,
            "max_tokens": 1000,
            "deadline_seconds": 20,
            "silence_seconds": 10,
            "retries": 2,
            "backoff_seconds": 0.01,
        }
        return Client(Model(**fields | changes), background, ledger or Ledger())

    yield make
    background.close()


def ask(client: Client, bill: Bill | None = None) -> Answer:
    return client.background.run(client.ask(QUESTION, bill or Bill()))


@pytest.mark.parametrize(
    "reply",
    [
        Reply("Hello, world: 日本\u2028!"),
        Reply("Hello, world: 日本\u2028!", chunk=3, pause=0.001),
        Reply("Hello, world: 日本\u2028!", stream=False),
        Reply("Hello, world: 日本\u2028!", latency=0.05, chunk=1),
    ],
)
def test_an_answer_is_read_however_it_is_sent(make_client: MakeClient, reply: Reply) -> None:
    with OpenAIServer([reply]) as server:
        answer = ask(make_client(server.base_url))
    assert answer == Answer("Hello, world: 日本\u2028!", "", truncated=False)


WHOLE = json.dumps(
    {"choices": [{"message": {"content": "Hello"}, "finish_reason": "stop"}]}, indent=1
).encode()


@pytest.mark.parametrize("kind", ["text/plain; charset=utf-8", "", "text/event-stream"])
@pytest.mark.parametrize("before", [b"", b"\n\n  ", b"\xef\xbb\xbf"])
def test_a_whole_answer_is_read_whatever_it_is_called(
    make_client: MakeClient, kind: str, before: bytes
) -> None:
    with OpenAIServer([Reply(raw=before + WHOLE, kind=kind)]) as server:
        assert ask(make_client(server.base_url)).text == "Hello"


@pytest.mark.parametrize("end", [b"\r", b"\n", b"\r\n"])
@pytest.mark.parametrize("before", [b"", b"\xef\xbb\xbf", b": nothing yet\n\n"])
def test_lines_of_a_stream_may_end_as_they_like(
    make_client: MakeClient, end: bytes, before: bytes
) -> None:
    stream = b"".join(map(event, ["Hel", "lo"])) + b"data: [DONE]\n\n"
    with OpenAIServer([Reply(raw=(before + stream).replace(b"\n", end))]) as server:
        assert ask(make_client(server.base_url)).text == "Hello"


def test_an_error_that_is_called_plain_text_is_told(make_client: MakeClient) -> None:
    failed = b'{"error": {"message": "out of memory"}}'
    with (
        OpenAIServer([Reply(raw=failed, kind="text/plain")]) as server,
        pytest.raises(failures.ServerFailed, match="out of memory"),
    ):
        ask(make_client(server.base_url, retries=0))


def event(content: object) -> bytes:
    choice = {"delta": {"content": content}, "finish_reason": None}
    return b"data: " + json.dumps({"choices": [choice]}).encode() + b"\n\n"


@pytest.mark.parametrize(
    ("pieces", "text"),
    [
        (["quick \ud83d", "\ude00 one"], "quick 😀 one"),
        (["half \ud83d", " left", " \ude00"], "half � left �"),
        ([[{"type": "text", "text": "in "}], [{"type": "text", "text": "parts"}]], "in parts"),
    ],
    ids=["two halves of a character", "one half alone", "parts"],
)
def test_an_answer_can_be_stored_whatever_it_is_made_of(
    make_client: MakeClient, pieces: list[object], text: str
) -> None:
    stream = b"".join(map(event, pieces)) + b"data: [DONE]\n\n"
    with OpenAIServer([Reply(raw=stream)]) as server:
        answer = ask(make_client(server.base_url))
    assert answer.full.encode().decode() == text


def test_thoughts_in_parts_are_kept_apart(make_client: MakeClient) -> None:
    thinking = [{"type": "thinking", "thinking": [{"type": "text", "text": "hmm"}]}]
    stream = event(thinking) + event([{"type": "text", "text": "yes"}]) + b"data: [DONE]\n\n"
    with OpenAIServer([Reply(raw=stream)]) as server:
        answer = ask(make_client(server.base_url))
    assert (answer.text, answer.thoughts) == ("yes", "hmm")


def test_bytes_that_are_no_text_are_replaced(make_client: MakeClient) -> None:
    stream = event("caf?").replace(b"?", b"\xe9") + b"data: [DONE]\n\n"
    with OpenAIServer([Reply(raw=stream)]) as server:
        assert ask(make_client(server.base_url)).text == "caf�"


def test_the_request_says_what_the_settings_say(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TINY_KEY", "sesame")
    with OpenAIServer([Reply("hi")]) as server:
        ask(make_client(server.base_url, api_key_env="TINY_KEY", extra={"reasoning_effort": "low"}))
        ask(
            make_client(server.base_url, temperature=None, max_tokens_field="max_completion_tokens")
        )
    first, second = server.requests
    assert first["model"] == "tiny"
    assert first["messages"][1] == {"role": "user", "content": "Hello?"}
    assert (first["temperature"], first["top_p"], first["max_tokens"]) == (0.6, 0.95, 1000)
    assert first["reasoning_effort"] == "low"
    assert server.headers[0]["Authorization"] == "Bearer sesame"
    assert "temperature" not in second
    assert second["max_completion_tokens"] == 1000
    assert "Authorization" not in server.headers[1]


def test_a_connection_is_used_again(make_client: MakeClient) -> None:
    with OpenAIServer([Reply("hi"), Reply("hi", chunk=1, pause=0.001), Reply("hi")]) as server:
        client = make_client(server.base_url)
        for _ in range(3):
            ask(client)
    assert len(set(server.clients)) == 1


def test_thoughts_are_kept_apart_and_marked(make_client: MakeClient) -> None:
    with OpenAIServer([Reply("yes", thoughts="hmm")]) as server:
        answer = ask(make_client(server.base_url))
    assert (answer.text, answer.thoughts) == ("yes", "hmm")
    assert answer.full == "<think>\nhmm\n</think>\n\nyes"


def test_the_servers_count_is_charged(make_client: MakeClient) -> None:
    counted = {
        "prompt_tokens": 12,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 4},
    }
    ledger, bill = Ledger(), Bill()
    with OpenAIServer([Reply("hello", usage=counted)]) as server:
        client = make_client(
            server.base_url, ledger, price_prompt=1.0, price_cached=0.5, price_completion=10.0
        )
        ask(client, bill)
    assert (bill.usage.prompt_tokens, bill.usage.cached_tokens) == (12, 4)
    assert (bill.usage.completion_tokens, bill.usage.requests) == (7, 1)
    assert bill.usage.dollars == pytest.approx((8 + 4 * 0.5 + 70) / 1e6)
    assert not bill.estimated
    assert ledger.spent == bill.usage


@pytest.mark.parametrize(
    "reply",
    [
        Reply("x" * 35, send_usage=False),
        Reply("x" * 35, usage={"prompt_tokens": -5, "completion_tokens": 3}),
        Reply("x" * 35, usage={"prompt_tokens": 5, "completion_tokens": 10**9}),
        Reply("x" * 35, usage={"prompt_tokens": 5, "completion_tokens": 0}),
        Reply("x" * 35, usage={"prompt_tokens": "5", "completion_tokens": 3}),
        Reply("x" * 35, usage={}),
    ],
)
def test_a_missing_or_impossible_count_is_estimated_and_marked(
    make_client: MakeClient, reply: Reply
) -> None:
    bill = Bill()
    with OpenAIServer([reply]) as server:
        ask(make_client(server.base_url), bill)
    assert bill.estimated
    assert bill.usage.completion_tokens == 10
    assert bill.usage.prompt_tokens == 5


@pytest.mark.parametrize(
    "trouble",
    [
        Reply(status=500),
        Reply(status=503),
        Reply(status=429),
        Reply("half an ans", chunk=2, reset_after=3),
        Reply("half an ans", finish=None),
        Reply(raw=b"data: {not json\n\n"),
        Reply(raw=b"<html>sorry</html>"),
        Reply(raw=b'data: {"error": {"message": "out of memory"}}\n\n'),
        Reply(raw=b'data: {"choices": [{"delta": {"content": 5}}]}\n\n'),
        Reply(raw=b"data: [1]\n\n"),
        Reply(raw=b"data: " + b"[" * 100_000 + b"\n\n"),
        Reply(raw=b"[" * 60_000, status=500),
    ],
)
def test_trouble_that_passes_is_outlasted(make_client: MakeClient, trouble: Reply) -> None:
    bill = Bill()
    with OpenAIServer([trouble, trouble, Reply("fine")]) as server:
        assert ask(make_client(server.base_url), bill).text == "fine"
    assert bill.usage.requests == len(server.requests) == 3


@pytest.mark.parametrize(
    ("trouble", "kind", "word"),
    [
        (Reply(status=500, text="no memory"), failures.ServerFailed, "no memory"),
        (Reply(status=429, text="slow down"), failures.RateLimited, "slow down"),
        (Reply(raw=b"data: {]\n\n"), failures.Garbled, "not JSON"),
        (Reply("abc", chunk=1, reset_after=2), failures.Unreachable, "connection broke"),
        (Reply("abc", finish=None), failures.Unreachable, "in the middle"),
        (Reply("abc", chunk=1, hang_after=2), failures.Stalled, "no byte for 2 s"),
    ],
)
def test_trouble_that_stays_is_named(
    make_client: MakeClient, trouble: Reply, kind: type[failures.ModelError], word: str
) -> None:
    with OpenAIServer([trouble]) as server:
        silence = 2 if kind is failures.Stalled else 30
        client = make_client(server.base_url, silence_seconds=silence, retries=1)
        with pytest.raises(kind, match=word) as caught:
            ask(client)
    assert len(server.requests) == 2
    assert caught.value.transient
    assert caught.value.hint


def test_a_lasting_refusal_is_not_repeated(make_client: MakeClient) -> None:
    with OpenAIServer([Reply(status=404, text="no such model")]) as server:
        with pytest.raises(failures.ModelUnknown, match="no such model") as caught:
            ask(make_client(server.base_url))
        assert "/models" in caught.value.hint
    with (
        OpenAIServer([Reply(status=400, text="context length")]) as server,
        pytest.raises(failures.RequestRefused, match="context length"),
    ):
        ask(make_client(server.base_url))
    assert len(server.requests) == 1


def test_a_refused_key_names_the_variable_and_never_the_key(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TINY_KEY", raising=False)
    with OpenAIServer([Reply(status=401, text="bad key sesame")]) as server:
        with pytest.raises(failures.KeyRefused) as caught:
            ask(make_client(server.base_url, api_key_env="TINY_KEY"))
        assert caught.value.hint == "set the environment variable TINY_KEY to the key"
        assert "is not set" in caught.value.what
        assert not server.requests, "nothing is sent without the key that was named"
        with pytest.raises(failures.KeyRefused) as caught:
            ask(make_client(server.base_url))
        assert "api_key_env" in caught.value.hint
        monkeypatch.setenv("TINY_KEY", "sesame")
        with pytest.raises(failures.KeyRefused) as caught:
            ask(make_client(server.base_url, api_key_env="TINY_KEY"))
        assert "TINY_KEY" in caught.value.hint
        assert "sesame" not in caught.value.what


@pytest.mark.parametrize(
    "page",
    [
        Reply(raw=b"<!doctype html><html>hello</html>", kind="text/html; charset=utf-8"),
        Reply(raw=b"<html>use GET</html>", kind="text/html", status=405),
        Reply(raw=b"", kind="text/html", status=301),
    ],
)
def test_a_web_site_is_not_taken_for_a_model(make_client: MakeClient, page: Reply) -> None:
    with OpenAIServer([page]) as server, pytest.raises(failures.NotAnApi) as caught:
        ask(make_client(server.base_url))
    assert len(server.requests) == 1
    assert "ends in /v1" in caught.value.hint


def test_no_server_at_all_is_unreachable_and_free(make_client: MakeClient) -> None:
    bill = Bill()
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # so that nobody else listens there
        port = silent.getsockname()[1]
        with pytest.raises(failures.Unreachable, match="cannot connect"):
            ask(make_client(f"http://127.0.0.1:{port}/v1"), bill)
    assert (bill.usage.prompt_tokens, bill.usage.requests) == (0, 3)


@pytest.mark.slow
def test_one_deadline_covers_answers_that_trickle(make_client: MakeClient) -> None:
    # Long enough for the first letters to come on a machine that stands still for seconds.
    started = time.monotonic()
    with OpenAIServer([Reply("x" * 1000, chunk=1, pause=0.05)]) as server:
        bill = Bill()
        with pytest.raises(failures.Stalled, match=r"no answer within 5 s"):
            ask(make_client(server.base_url, deadline_seconds=5), bill)
    assert time.monotonic() - started >= 5
    assert len(server.requests) == 1
    assert bill.estimated
    assert bill.usage.completion_tokens > 0, "what came is charged"


def test_retry_after_is_honoured(make_client: MakeClient) -> None:
    replies = [Reply(status=429, retry_after="0.3"), Reply("fine")]
    with OpenAIServer(replies) as server:
        client = make_client(server.base_url)
        started = time.monotonic()
        assert ask(client).text == "fine"
        assert time.monotonic() - started >= 0.3


def test_a_retry_after_beyond_the_deadline_fails_at_once(make_client: MakeClient) -> None:
    with (
        OpenAIServer([Reply(status=429, retry_after="3600")]) as server,
        pytest.raises(failures.RateLimited),
    ):
        ask(make_client(server.base_url))
    assert len(server.requests) == 1


def test_retry_after_may_be_a_date() -> None:
    later = datetime.now(UTC) + timedelta(seconds=100)
    wait = retry_after({"Retry-After": format_datetime(later, usegmt=True)})
    assert wait is not None
    assert 90 < wait <= 100
    assert retry_after({"Retry-After": "soon"}) is None
    assert retry_after({}) is None


def test_an_answer_at_its_limit_is_marked(make_client: MakeClient) -> None:
    with OpenAIServer([Reply("class Mod", finish="length")]) as server:
        assert ask(make_client(server.base_url)).truncated


def test_a_server_that_ignores_the_limit_is_cut_off(make_client: MakeClient) -> None:
    with OpenAIServer([Reply("x" * 100_000, chunk=100)]) as server:
        answer = ask(make_client(server.base_url, max_tokens=10))
    assert answer.truncated
    assert len(answer.text) <= 300


def test_threads_ask_side_by_side_and_stay_below_the_cap(make_client: MakeClient) -> None:
    ledger = Ledger(max_tokens=5000)
    outcomes: list[str] = []
    lock = threading.Lock()

    def work(_: int) -> None:
        try:
            outcome = ask(client).text
        except failures.BudgetSpent:
            outcome = "spent"
        with lock:
            outcomes.append(outcome)

    with OpenAIServer([Reply("y" * 2000, latency=0.1)]) as server:
        client = make_client(server.base_url, ledger)
        with ThreadPoolExecutor(8) as threads:
            list(threads.map(work, range(16)))
    assert "spent" in outcomes
    assert len(server.requests) == 16 - outcomes.count("spent") > 1
    spent = ledger.spent
    assert spent.prompt_tokens + spent.completion_tokens <= 5000


def test_closing_ends_what_is_under_way() -> None:
    background = Background()
    with OpenAIServer([Reply("x", hang_after=0)]) as server:
        client = Client(Model(name="m", base_url=server.base_url), background, Ledger())
        with ThreadPoolExecutor(1) as threads:
            asked = threads.submit(ask, client)
            while not server.requests:
                time.sleep(0.01)
            background.close()
            with pytest.raises(failures.Stopped):
                asked.result(timeout=120)
    background.close()
    with pytest.raises(failures.Stopped):
        ask(client)
    with pytest.raises(failures.Stopped):
        background.submit(client.ask(QUESTION, Bill())).result(timeout=120)
