"""A server on this machine that speaks the chat completions protocol and says what it is told.

    with OpenAIServer([Reply("hello"), Reply(status=429, retry_after="1")]) as server:
        ...  # ask server.base_url

Replies are used in order and the last one again and again; a function of the request works, too.
The question that a run asks before it begins is answered beside them, unless `preflight` is None.
Without latency it answers as fast as Python can, so that a benchmark sees the caller's own time.
"""

from __future__ import annotations

import json
import socket
import struct
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from kernel_smith.proposers.model.preflight import QUESTION

_LONGEST_HANG_SECONDS = 60.0


@dataclass(frozen=True)
class Reply:
    """One behaviour. By default: the text, streamed at once, with a usage that is right."""

    text: str = ""
    thoughts: str = ""
    chunk: int = 4096  # characters per event
    latency: float = 0.0  # seconds before the first byte
    pause: float = 0.0  # seconds between events
    finish: str | None = "stop"
    first_token: Mapping[str, float] | None = None  # log-probabilities, for whoever asks for them
    usage: dict[str, Any] | None = None  # none: counted
    send_usage: bool = True
    stream: bool = True  # False: one JSON object, whatever was asked for
    status: int = 200  # anything else: an error with `text` as its message
    retry_after: str | None = None
    raw: bytes | None = None  # sent as the body, instead of an answer
    kind: str = "text/event-stream"  # of that body; empty: the server does not say
    hang_after: int | None = None  # events, and then silence
    reset_after: int | None = None  # events, and then the connection is cut


YES = Reply("yes")
Script = Callable[[dict[str, Any]], Reply]


class OpenAIServer:
    """Listens on loopback while it is open. `requests` holds what was asked, oldest first."""

    def __init__(
        self,
        replies: Sequence[Reply] | Script,
        *,
        preflight: Reply | None = YES,
        models: Sequence[str] | None = None,  # what it lists; none: it has no list
    ) -> None:
        self._replies = replies
        self._preflight = preflight
        self.models = models
        self._lock = threading.Lock()
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.clients: list[int] = []  # the port that each request came from
        self.closing = threading.Event()
        self._server = _Server(self)
        self._thread = threading.Thread(
            target=self._server.serve_forever, args=(0.05,), name="openai-server", daemon=True
        )

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.closing.set()
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def next_reply(self, request: dict[str, Any], headers: dict[str, str], client: int) -> Reply:
        if self._preflight and request.get("messages") == [QUESTION.model_dump()]:
            return self._preflight
        with self._lock:
            number = len(self.requests)
            self.requests.append(request)
            self.headers.append(headers)
            self.clients.append(client)
        if callable(self._replies):
            return self._replies(request)
        return self._replies[min(number, len(self._replies) - 1)]


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False  # a client may keep its connection open
    request_queue_size = 128

    def __init__(self, owner: OpenAIServer) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.owner = owner

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that went away is an ordinary part of what is tested."""


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    wbufsize = 1 << 16  # headers and a short answer leave in one packet

    def do_GET(self) -> None:
        assert isinstance(self.server, _Server)
        models = self.server.owner.models
        if self.path != "/v1/models" or models is None:
            self._send(404, "text/html", b"<html>no such page</html>")
            return
        listed = {"object": "list", "data": [{"id": name, "object": "model"} for name in models]}
        self._send(200, "application/json", json.dumps(listed).encode())

    def do_POST(self) -> None:
        assert isinstance(self.server, _Server)
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        reply = self.server.owner.next_reply(body, dict(self.headers), self.client_address[1])
        if reply.latency:
            self._wait(reply.latency)
        if reply.raw is not None:
            self._send(reply.status, reply.kind, reply.raw)
        elif reply.status != 200:
            error = {"error": {"message": reply.text or "scripted", "code": reply.status}}
            self._send(reply.status, "application/json", json.dumps(error).encode(), reply)
        elif not reply.stream:
            self._send(200, "application/json", json.dumps(_whole(reply, body)).encode())
        else:
            self._stream(reply, body)

    def _stream(self, reply: Reply, body: dict[str, Any]) -> None:
        events = [
            b"data: " + json.dumps(event).encode() + b"\n\n" for event in _events(reply, body)
        ]
        if reply.finish is not None:
            if reply.send_usage:
                usage = {"choices": [], "usage": _usage(reply, body)}
                events.append(b"data: " + json.dumps(usage).encode() + b"\n\n")
            events.append(b"data: [DONE]\n\n")
        if not reply.pause and reply.hang_after is None and reply.reset_after is None:
            self._send(200, "text/event-stream", b"".join(events))
            return
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for number, event in enumerate(events):
            if number == reply.hang_after:
                self._wait(_LONGEST_HANG_SECONDS)
            if number == reply.reset_after:
                self._reset()
                return
            self.wfile.write(b"%x\r\n%s\r\n" % (len(event), event))
            self.wfile.flush()
            self._wait(reply.pause)
        self.wfile.write(b"0\r\n\r\n")

    def _send(self, status: int, kind: str, data: bytes, reply: Reply | None = None) -> None:
        self.send_response(status)
        if kind:
            self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(data)))
        if reply is not None and reply.retry_after is not None:
            self.send_header("Retry-After", reply.retry_after)
        self.end_headers()
        self.wfile.write(data)

    def _wait(self, seconds: float) -> None:
        assert isinstance(self.server, _Server)
        if seconds:
            self.server.owner.closing.wait(seconds)

    def _reset(self) -> None:
        """End the connection the way that a killed server does."""
        self.wfile.flush()
        self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def log_message(self, format: str, *args: object) -> None:
        """Nothing is printed."""


def _events(reply: Reply, body: dict[str, Any]) -> list[dict[str, Any]]:
    events = [_event({"role": "assistant"}, None)]
    logprobs = _logprobs(reply, body)
    for name, text in (("reasoning_content", reply.thoughts), ("content", reply.text)):
        for start in range(0, len(text), reply.chunk):
            events.append(_event({name: text[start : start + reply.chunk]}, None, logprobs))
            logprobs = None
    if reply.finish is not None:
        events.append(_event({}, reply.finish))
    return events


def _event(
    delta: dict[str, str], finish: str | None, logprobs: dict[str, Any] | None = None
) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish, "logprobs": logprobs}
    return {"id": "1", "object": "chat.completion.chunk", "choices": [choice]}


def _logprobs(reply: Reply, body: dict[str, Any]) -> dict[str, Any] | None:
    """The first token, and as many others as were asked for, the likeliest first."""
    if reply.first_token is None or not body.get("logprobs"):
        return None
    ranked = sorted(reply.first_token.items(), key=lambda pair: -pair[1])
    listed = [
        {"token": token, "logprob": each, "bytes": list(token.encode())} for token, each in ranked
    ]
    return {"content": [listed[0] | {"top_logprobs": listed[: body.get("top_logprobs", 0)]}]}


def _whole(reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    message = {"role": "assistant", "content": reply.text, "reasoning_content": reply.thoughts}
    answer: dict[str, Any] = {
        "id": "1",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": message,
                "finish_reason": reply.finish,
                "logprobs": _logprobs(reply, body),
            }
        ],
    }
    if reply.send_usage:
        answer["usage"] = _usage(reply, body)
    return answer


def _usage(reply: Reply, body: dict[str, Any]) -> dict[str, Any]:
    if reply.usage is not None:
        return reply.usage
    prompt = sum(len(message["content"]) for message in body["messages"]) // 4
    return {
        "prompt_tokens": max(1, prompt),
        "completion_tokens": max(1, len(reply.text + reply.thoughts) // 4),
    }
