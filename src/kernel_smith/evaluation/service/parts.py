"""What the routes of an application share, and how they get at it."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Annotated, cast

from fastapi import Depends, Request

from kernel_smith.evaluation.service.auth import TokenFile
from kernel_smith.evaluation.service.book import JobBook
from kernel_smith.evaluation.service.dispatcher import Dispatcher
from kernel_smith.evaluation.service.following import Following
from kernel_smith.evaluation.service.metrics import Metrics


@dataclass(frozen=True)
class Parts:
    book: JobBook
    dispatcher: Dispatcher
    tokens: TokenFile | None
    max_body: int
    metrics: Metrics
    following: Following
    tasks: frozenset[str] | None
    """The content hashes of the tasks that are evaluated; None: whatever clients bring."""
    draining: threading.Event = field(default_factory=threading.Event)

    @property
    def ready(self) -> bool:
        return bool(self.dispatcher.health()["alive"]) and not self.draining.is_set()


async def _parts(request: Request) -> Parts:
    return cast(Parts, request.app.state.parts)


Shared = Annotated[Parts, Depends(_parts)]
