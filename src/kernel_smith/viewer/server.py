"""Serve the live page until somebody ends it."""

from __future__ import annotations

import secrets
import socket

import uvicorn

from kernel_smith.evaluation.service.listening import listen, url_of
from kernel_smith.loopback import is_loopback
from kernel_smith.viewer.app import make_app
from kernel_smith.viewer.bench_page import ResultBook
from kernel_smith.viewer.book import RunBook

_LAST_ANSWERS_SECONDS = 1
_AT_ONCE = 64


class Dashboard:
    """`Dashboard(book, results).run()` serves until a signal comes, or `stop` is called."""

    def __init__(
        self, book: RunBook, results: ResultBook, *, host: str = "127.0.0.1", port: int = 0
    ) -> None:
        self._token = None if is_loopback(host) else secrets.token_urlsafe(32)
        self._socket: socket.socket = listen(host, port)
        config = uvicorn.Config(
            make_app(book, results, self._token),
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            limit_concurrency=_AT_ONCE,
            timeout_graceful_shutdown=_LAST_ANSWERS_SECONDS,
        )
        self._server = uvicorn.Server(config)

    @property
    def url(self) -> str:
        """What to open: with the token, where one is asked for."""
        address = f"{url_of(self._socket)}/"
        return address if self._token is None else f"{address}?token={self._token}"

    def run(self) -> None:
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()

    def stop(self) -> None:
        """Begin to end; returns at once."""
        self._server.should_exit = True
