"""Waiting for jobs to end, without a thread per connection."""

from __future__ import annotations

import asyncio

from fastapi.concurrency import run_in_threadpool

from kernel_smith.evaluation.service.parts import Parts
from kernel_smith.records import Job


async def wait_for(parts: Parts, client: str, job: str, until: float) -> Job:
    """The job once it has ended, or as it is at that moment of the event loop's clock."""
    clock = asyncio.get_running_loop().time
    with parts.following.listen(client, job) as listener:
        while True:
            found = await run_in_threadpool(parts.book.get, client, job)
            left = until - clock()
            if found.state.final or left <= 0 or parts.following.closed:
                return found
            await listener.changed(left)
