"""An event loop in a thread of its own, where requests of all threads wait side by side.

Deadlines of an event loop are exact: a stalled read, a wait for the rate limit and a pause before a
retry all end when the time is up, or when the loop is closed.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from kernel_smith.proposers.model.failures import Stopped

T = TypeVar("T")


class Background:
    """Runs coroutines for other threads. The thread starts with the first of them."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._closed = False
        self._last: list[Callable[[], Coroutine[Any, Any, None]]] = []

    def finally_run(self, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Have a coroutine run when all others have ended. Called on the loop."""
        self._last.append(work)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Return the coroutine's result. Raises `Stopped` once this is closed."""
        future = self.submit(work)
        try:
            return future.result()
        except CancelledError:
            raise _stopped() from None
        finally:
            future.cancel()  # the calling thread was interrupted: nobody waits for the answer

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Return the coroutine's result to come. It is cancelled when this is closed."""
        # Under the lock: what is submitted to a loop that has just been closed would never end.
        with self._lock:
            if not self._closed:
                return asyncio.run_coroutine_threadsafe(work, self._started())
        work.close()
        future: Future[T] = Future()
        future.set_exception(_stopped())
        return future

    def close(self) -> None:
        """Cancel what is under way and end the thread."""
        with self._lock:
            loop, thread, self._closed = self._loop, self._thread, True
            self._loop = self._thread = None
        if loop is not None and thread is not None:
            loop.call_soon_threadsafe(loop.stop)
            thread.join()

    def _started(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            import uvloop  # when it is needed: most commands ask no model

            self._loop = uvloop.new_event_loop()
            self._thread = threading.Thread(
                target=_serve, args=(self._loop, self._last), name="model-client", daemon=True
            )
            self._thread.start()
        return self._loop


def _serve(
    loop: asyncio.AbstractEventLoop, last: list[Callable[[], Coroutine[Any, Any, None]]]
) -> None:
    asyncio.set_event_loop(loop)
    loop.run_forever()
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    for work in last:
        loop.run_until_complete(work())
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    loop.close()


def _stopped() -> Stopped:
    return Stopped("the model client was closed", hint="start the run again to go on")
