"""The server: an address, a graceful end, and the rule that strangers need a token.

On SIGTERM or SIGINT it takes no more jobs and says that it is not ready, lets running evaluations
finish for a while, gives the others back to the book, and ends. A second signal ends it at once.
"""

from __future__ import annotations

import threading
from types import FrameType

import uvicorn

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.service.app import DEFAULT_MAX_BODY, make_app
from kernel_smith.evaluation.service.auth import TokenFile
from kernel_smith.evaluation.service.book import JobBook
from kernel_smith.evaluation.service.dispatcher import Dispatcher
from kernel_smith.evaluation.service.listening import BACKLOG, listen, url_of
from kernel_smith.loopback import is_loopback

_LAST_ANSWERS_SECONDS = 5
_KEEP_ALIVE_SECONDS = 60  # longer than clients do, so that it is they who close connections


class Service:
    """`Service(book, dispatcher).run()` serves until a signal comes, or `stop` is called."""

    def __init__(
        self,
        book: JobBook,
        dispatcher: Dispatcher,
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        tokens: TokenFile | None = None,
        tasks: frozenset[str] | None = None,
        max_body: int = DEFAULT_MAX_BODY,
        drain_seconds: float = 60.0,
    ) -> None:
        refuse_strangers(host, tokens)
        self._dispatcher = dispatcher
        self._drain_seconds = drain_seconds
        self._drained: threading.Thread | None = None
        self._given_back = 0
        self.app = make_app(book, dispatcher, tokens=tokens, tasks=tasks, max_body=max_body)
        self._socket = listen(host, port)
        config = uvicorn.Config(
            self.app,
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=BACKLOG,
            timeout_keep_alive=_KEEP_ALIVE_SECONDS,
            timeout_graceful_shutdown=_LAST_ANSWERS_SECONDS,
        )
        self._server = _Server(config, self)

    @property
    def url(self) -> str:
        return url_of(self._socket)

    def run(self) -> int:
        """Serve. Returns how many evaluations were under way and are given back at the end."""
        self._dispatcher.start()
        try:
            self._server.run(sockets=[self._socket])
        finally:
            self._socket.close()
            self.app.state.parts.following.close()
            # In a hurry something may be under way still; this ends the other wait as well.
            left = self._dispatcher.drain(0)
            if self._drained is not None:
                self._drained.join()
            self._dispatcher.close()
        return self._given_back + left

    def stop(self) -> None:
        """Begin to end; returns at once. The second time: end at once."""
        if self._drained is not None:
            self._server.should_exit = True
            return
        self._drained = threading.Thread(target=self._drain, daemon=True)
        self._drained.start()

    def _drain(self) -> None:
        self.app.state.parts.draining.set()
        try:
            self._given_back = self._dispatcher.drain(self._drain_seconds)
        finally:
            self.app.state.parts.following.close()
            self._server.should_exit = True


class _Server(uvicorn.Server):
    """Signals begin a graceful end, instead of closing the door at once."""

    def __init__(self, config: uvicorn.Config, service: Service) -> None:
        super().__init__(config)
        self._service = service

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        self._service.stop()


def refuse_strangers(host: str, tokens: TokenFile | None) -> None:
    """Whoever can ask can have programs run, so other machines need a token."""
    if tokens is None and not is_loopback(host):
        raise BadInput(
            f"host {host!r} can be reached from other machines, and no tokens are asked for",
            hint="make a token with `kernel-smith serve tokens add FILE NAME` and add --clients "
            "FILE, or leave out --host",
        )
