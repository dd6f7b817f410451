"""The jobs that a remote engine has at a service: sent, followed, fetched, and cancelled.

Everything here runs on one event loop. A service may be restarted meanwhile, lose its connection,
or tell of the end of a job before it has told the job's name; no answer is lost by that.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections.abc import AsyncIterator, Coroutine
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from kernel_smith.errors import BadInput, InternalError, MissingPrerequisite, UserError
from kernel_smith.evaluation.engines.remote_calls import (
    UNREACHABLE,
    Calls,
    NotNow,
    QueueIsFull,
)
from kernel_smith.records import Evaluation, Job, JobRequest, JobState

_MOST_SENT = 64
_MOST_SENT_CHARACTERS = 2 << 20
_MOST_FETCHED = 64
_CANCELLED_AT_ONCE = 8
_SILENCE_SECONDS = 40.0  # the service says something every ten seconds
_RECONNECT_SECONDS = 0.5
_TIMES_ASKED = 3  # when somebody else cancels the job, or the service has lost it
_CANCEL_PATIENCE = 2.0
_LAST_WORDS_SECONDS = 5.0
_LOOK_SECONDS = 0.02


@dataclass(eq=False)
class Asked:
    """A request, and who waits for its answer."""

    request: JobRequest
    text: str
    future: Future[Evaluation] = field(default_factory=Future)
    times: int = 0
    job: str | None = None
    _begun: bool = False

    def begin(self) -> bool:
        """From now on it cannot be cancelled. False if it was, or is answered already."""
        if not self._begun and not self.future.done():
            self._begun = self.future.set_running_or_notify_cancel()
        return self._begun and not self.future.done()

    def answer(self, evaluation: Evaluation) -> None:
        request = self.request
        right = (request.task.content_hash, request.candidate.content_hash)
        if (evaluation.task_hash, evaluation.candidate_hash) != right:
            self.fail(InternalError("the service answered with another candidate's evaluation"))
        elif self.begin():
            self.future.set_result(evaluation)

    def fail(self, error: Exception) -> None:
        if self.begin():
            self.future.set_exception(error)


class RemoteJobs:
    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self._jobs: dict[str, list[Asked]] = {}
        self._outbox: asyncio.Queue[Asked] = asyncio.Queue()
        self._unsent: set[Asked] = set()
        self._sending = False
        self._told_meanwhile: dict[str, JobState] = {}
        self._due: asyncio.Queue[str] = asyncio.Queue()  # jobs that may have ended
        self._slots = asyncio.Semaphore(_CANCELLED_AT_ONCE)
        self._lasting: list[asyncio.Task[None]] = []
        self._errands: set[asyncio.Task[None]] = set()

    def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._lasting = [
            loop.create_task(work) for work in (self._send_all(), self._follow(), self._fetch_all())
        ]

    def add(self, asked: Asked) -> None:
        self._unsent.add(asked)
        self._outbox.put_nowait(asked)

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._errands.add(task)
        task.add_done_callback(self._errands.discard)

    # Sending

    async def _send_all(self) -> None:
        while True:
            batch = [await self._outbox.get()]
            size = len(batch[0].text)
            while not self._outbox.empty() and len(batch) < _MOST_SENT:
                if size > _MOST_SENT_CHARACTERS:
                    break
                batch.append(self._outbox.get_nowait())
                size += len(batch[-1].text)
            self._sending = True
            await self._send(batch)
            self._sending = False
            self._told_meanwhile.clear()

    async def _send(self, batch: list[Asked]) -> None:
        """Send them together; what is refused together is sent in halves."""
        batch = [asked for asked in batch if not asked.future.done()]
        if not batch:
            return
        several = len(batch) > 1
        body = f'{{"requests":[{",".join(asked.text for asked in batch)}]}}'
        try:
            response = await self._calls.ask(
                "POST", "/v1/jobs/batch", body=body, wait_while_full=not several
            )
            told = [(str(job["id"]), JobState(job["state"])) for job in response.json()["jobs"]]
            if len(told) != len(batch):
                raise ValueError(f"{len(batch)} requests, but {len(told)} jobs")
            self._sent(batch, told)
        except (BadInput, QueueIsFull) as error:
            if several:
                await self._send(batch[: len(batch) // 2])
                await self._send(batch[len(batch) // 2 :])
            else:
                self._refuse(batch, error)
        except (MissingPrerequisite, InternalError) as error:
            self._refuse(batch, error)
        except (ValueError, KeyError, TypeError) as error:
            self._refuse(batch, _unexpected(error))

    def _sent(self, batch: list[Asked], told: list[tuple[str, JobState]]) -> None:
        for asked, (job, _) in zip(batch, told, strict=True):
            self._unsent.discard(asked)
            asked.job = job
            asked.times += 1
            self._jobs.setdefault(job, []).append(asked)
        for asked, (job, state) in zip(batch, told, strict=True):
            # Changes may have been told before its name was.
            self._note(job, state if state.final else self._told_meanwhile.get(job, state))
            if asked.future.cancelled():
                self.forget(asked)

    def _refuse(self, batch: list[Asked], error: Exception) -> None:
        for asked in batch:
            self._unsent.discard(asked)
            asked.fail(error)

    # Following

    async def _follow(self) -> None:
        """Listen to the service, for ever."""
        while True:
            try:
                async with self._calls.listen("/v1/events", _SILENCE_SECONDS) as lines:
                    # What changed before this moment is not told.
                    for job in self._jobs:
                        self._due.put_nowait(job)
                    await self._listen(lines)
            except UNREACHABLE as error:
                self._give_up_if_too_long(self._calls.unreachable(error))
            except NotNow as error:
                self._give_up_if_too_long(error.trouble)
            except (UserError, InternalError) as error:
                self._give_up(error)
            await asyncio.sleep(_RECONNECT_SECONDS)

    async def _listen(self, lines: AsyncIterator[str]) -> None:
        async for line in lines:
            if line.startswith("data:"):
                with contextlib.suppress(ValueError, KeyError, TypeError):
                    told = json.loads(line.removeprefix("data:"))
                    self._note(str(told["id"]), JobState(told["state"]))

    def _give_up_if_too_long(self, error: UserError) -> None:
        if time.monotonic() - self._calls.last_contact > self._calls.patience:
            self._give_up(error)

    def _give_up(self, error: Exception) -> None:
        self._fail_all(list(self._jobs), error)

    def _note(self, job: str, state: JobState) -> None:
        if self._sending:
            self._told_meanwhile[job] = state
        if job not in self._jobs:
            return
        if state.final:
            self._due.put_nowait(job)
        elif state is JobState.RUNNING:
            for asked in self._jobs[job]:
                asked.begin()

    # Fetching

    async def _fetch_all(self) -> None:
        """Ask for jobs that may have ended, all that are due at once, and hand out the answers."""
        while True:
            due = {await self._due.get()}
            while not self._due.empty() and len(due) < _MOST_FETCHED:
                due.add(self._due.get_nowait())
            wanted = [job for job in due if job in self._jobs]
            if wanted:
                await self._fetch(wanted)

    async def _fetch(self, wanted: list[str]) -> None:
        try:
            body = json.dumps({"ids": wanted})
            response = await self._calls.ask("POST", "/v1/jobs/read", body=body)
            for job, found in zip(wanted, response.json()["jobs"], strict=True):
                if found is None:
                    self._ask_again(job, "was lost by the service")
                else:
                    self._take(Job.model_validate(found))
        except (ValueError, KeyError, TypeError) as error:  # what pydantic raises is among them
            self._fail_all(wanted, _unexpected(error))
        except (UserError, InternalError) as error:
            self._fail_all(wanted, error)

    def _fail_all(self, jobs: list[str], error: Exception) -> None:
        for job in jobs:
            self._fail(job, error)

    def _take(self, found: Job) -> None:
        if found.state is JobState.CANCELLED:
            self._ask_again(found.id, "was cancelled by somebody else")
        elif found.error is not None:
            self._fail(found.id, found.error.as_exception())
        elif found.evaluation is not None:
            for asked in self._jobs.pop(found.id, ()):
                asked.answer(found.evaluation)
        elif found.state is JobState.RUNNING:
            self._note(found.id, found.state)

    def _fail(self, job: str, error: Exception) -> None:
        for asked in self._jobs.pop(job, ()):
            asked.fail(error)

    def _ask_again(self, job: str, what: str) -> None:
        for asked in self._jobs.pop(job, ()):
            if asked.future.done():
                continue
            if asked.times < _TIMES_ASKED:
                self.add(asked)
            else:
                asked.fail(InternalError(f"the evaluation {what}, {asked.times} times"))

    # Ending

    def forget(self, asked: Asked) -> None:
        """Its future was cancelled. The job is, too, once nobody waits for it any more."""
        waiting = self._jobs.get(asked.job) if asked.job is not None else None
        if waiting is None or asked not in waiting:
            return
        waiting.remove(asked)
        if not waiting and asked.job is not None:
            del self._jobs[asked.job]
            if not self._is_wanted_again(asked):
                self._spawn(self._cancel(asked.job))

    def _is_wanted_again(self, asked: Asked) -> bool:
        """Is the same being sent? It would get the job that is about to be cancelled."""
        return any(other.text == asked.text and not other.future.done() for other in self._unsent)

    async def _cancel(self, job: str) -> None:
        # If this fails, the service evaluates in vain.
        with contextlib.suppress(UserError, InternalError):
            async with self._slots:
                await self._calls.ask("DELETE", f"/v1/jobs/{job}", patience=_CANCEL_PATIENCE)

    async def finish(self, hurry: bool) -> None:
        """Cancel what waits, and wait for the rest; in a hurry give that up as well."""
        begun = [asked for each in self._jobs.values() for asked in each]
        for asked in [*self._unsent, *begun]:
            if not asked.future.cancel() and hurry:
                asked.fail(InternalError("the engine was closed"))
                self.forget(asked)
        await asyncio.sleep(0)  # what was cancelled is forgotten now
        while self._jobs:
            await asyncio.sleep(_LOOK_SECONDS)
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_LAST_WORDS_SECONDS):
                while self._sending or self._errands:
                    await asyncio.sleep(_LOOK_SECONDS)

    async def stop(self) -> None:
        tasks = [*self._lasting, *self._errands]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._calls.close()


def _unexpected(error: Exception) -> InternalError:
    return InternalError(f"the service sent what this release does not understand: {error}")
