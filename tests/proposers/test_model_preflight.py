"""The one question before a run: whatever keeps a model from answering is named."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from kernel_smith.errors import BadInput
from kernel_smith.proposers.model import Model, Settings, check_models, preflight
from kernel_smith.testing.openai_server import OpenAIServer, Reply

PAGE = b"<!doctype html><html>Welcome</html>"


def settings(url: str, **fields: Any) -> Settings:
    fields = {"retries": 0, "backoff_seconds": 0.01} | fields
    return Settings(models=(Model(name="m", base_url=url, **fields),))


def test_a_model_that_answers_is_asked_once_and_little() -> None:
    with OpenAIServer([Reply("yes")], preflight=None) as server:
        check_models(settings(server.base_url))
    (asked,) = server.requests
    assert asked["max_tokens"] <= 1024
    assert len(asked["messages"]) == 1 and len(asked["messages"][0]["content"]) < 100


@pytest.mark.parametrize(
    "answer",
    [
        Reply("maybe not", finish="length"),
        Reply(""),
        Reply("y", thoughts="hm"),
        Reply(status=429),
    ],
)
def test_whoever_answers_at_all_will_do(answer: Reply) -> None:
    with OpenAIServer([answer], preflight=None) as server:
        check_models(settings(server.base_url))


@pytest.mark.parametrize(
    ("answer", "listed", "words"),
    [
        (Reply(status=401, text="bad key"), None, ("HTTP 401: bad key", "api_key_env")),
        (Reply(status=402, text="no credit"), None, ("HTTP 402", "api_key_env")),
        (Reply(status=404), ["a", "b"], ("no model is called 'm'", "it has: a, b")),
        (Reply(status=404), ["m"], ("HTTP 404", "/models lists the names")),
        (Reply(status=404), None, ("no OpenAI-compatible API there", "ends in /v1")),
        (Reply(raw=PAGE, kind="text/html"), None, ("a web page in place", "ends in /v1")),
        (Reply(raw=PAGE, kind="text/html", status=405), None, ("HTTP 405", "ends in /v1")),
        (Reply(raw=b"[]", kind="application/json"), None, ("not an object", "ends in /v1")),
        (Reply(status=500, text="no memory"), None, ("no memory", "server's log")),
        (
            Reply(status=400, text="Use 'max_completion_tokens' instead"),
            None,
            ("HTTP 400", "max_tokens_field=max_completion_tokens"),
        ),
        (
            Reply(status=400, text="temperature does not support 0.6"),
            None,
            ("HTTP 400", "temperature=none"),
        ),
    ],
)
def test_what_is_wrong_is_named(
    answer: Reply, listed: list[str] | None, words: tuple[str, ...]
) -> None:
    with (
        OpenAIServer([answer], preflight=None, models=listed) as server,
        pytest.raises(BadInput) as caught,
    ):
        check_models(settings(server.base_url))
    assert caught.value.exit_code == 2
    for word in words:
        assert word in f"{caught.value.what}\n{caught.value.hint}"


def test_a_server_that_is_down_or_silent_is_named() -> None:
    with socket.socket() as silent:
        silent.bind(("127.0.0.1", 0))  # so that nobody else listens there
        address = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        with pytest.raises(BadInput, match=r"cannot connect \(Connection refused\)"):
            check_models(settings(address))
    with (
        OpenAIServer([Reply("late", latency=30)], preflight=None) as server,
        pytest.raises(BadInput, match=r"no byte for 0\.2 s"),
    ):
        check_models(settings(server.base_url, silence_seconds=0.2))


def test_a_server_that_takes_the_question_and_hangs_is_named(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """To raise a deadline that the preflight cuts short would be of no use."""
    monkeypatch.setattr(preflight, "_PATIENCE_SECONDS", 0.2)
    with OpenAIServer([Reply("late", latency=30)], preflight=None) as server:
        with pytest.raises(BadInput, match=r"no answer within 0\.2 s, at http://127") as caught:
            check_models(settings(server.base_url))
        assert f"curl {server.base_url}/models" in caught.value.hint
    assert "deadline" not in caught.value.hint


def test_a_key_that_is_named_and_not_set_is_an_error_before_anything_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delenv("SOME_KEY", raising=False)
    with OpenAIServer([Reply("yes")], preflight=None) as server:
        with pytest.raises(BadInput, match="SOME_KEY, which is to hold its key, is not set"):
            check_models(settings(server.base_url, api_key_env="SOME_KEY"))
        assert not server.requests
        monkeypatch.setenv("SOME_KEY", "sesame")
        check_models(settings(server.base_url, api_key_env="SOME_KEY"))
        assert server.headers[0]["Authorization"] == "Bearer sesame"


def test_one_bad_model_of_several_is_found() -> None:
    with OpenAIServer([]) as good, OpenAIServer([Reply(status=403)], preflight=None) as bad:
        models = tuple(
            Model(name=name, base_url=server.base_url)
            for name, server in (("good", good), ("bad", bad))
        )
        with pytest.raises(BadInput, match=r"^bad at "):
            check_models(Settings(models=models))
