"""The language model as a proposer: one program per request, and repairs of near misses."""

from __future__ import annotations

import random
import threading
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Future
from typing import Any, TypeVar

from kernel_smith.programs.fold import Folded
from kernel_smith.proposers.base import Recall, recall_nothing
from kernel_smith.proposers.credit import PARENT_SPEEDUP, gain_of, note_parent
from kernel_smith.proposers.model.background import Background
from kernel_smith.proposers.model.choice import Choice
from kernel_smith.proposers.model.client import Client
from kernel_smith.proposers.model.config import Settings
from kernel_smith.proposers.model.dialogue import Outcome, converse, think
from kernel_smith.proposers.model.failures import ModelError
from kernel_smith.proposers.model.ledger import Ledger
from kernel_smith.proposers.model.patience import Patience
from kernel_smith.proposers.model.preflight import demand_prices
from kernel_smith.proposers.model.prompt import Prompts
from kernel_smith.proposers.model.repair import NearMiss, Waiting, depth, follow_up
from kernel_smith.proposers.model.sections import focus_of
from kernel_smith.proposers.model.transport import Transport
from kernel_smith.records import (
    Broken,
    Candidate,
    Evaluation,
    Message,
    Note,
    Plan,
    Proposal,
    Question,
    Request,
    Usage,
)

Said = TypeVar("Said")
_FIRST_NAME = "first.py"
_FOLDED = "focus"  # where a proposal notes the workload that its parent was shown for


class ModelProposer:
    """A `Worker` that asks the models of the settings: those that gain more for their price more
    often (`choice.py`).

    `tokens` and `dollars` cap what all of them take together, requests under way included. A run
    that is resumed passes what it has `spent`. Failures are `ModelError`s; a model that will not
    answer in this run (no key, unknown name), or gave nothing of use for too long, is left out from
    then on. Where none is left, the failure is final. `transports` are ways to reach models other
    than over HTTP, by the models' names. `recall` is a run's (`RunState.recall`): a program that it
    knows is an answer of no use, and the model is told so.
    """

    name = "model"
    begins = True

    def __init__(
        self,
        settings: Settings,
        *,
        tokens: int | None = None,
        dollars: float | None = None,
        spent: Usage | None = None,
        transports: Mapping[str, Transport] | None = None,
        recall: Recall = recall_nothing,
    ) -> None:
        if dollars is not None:
            demand_prices(settings)
        self._asks_again = settings.asks_again
        self._recall = recall
        self._prompts = Prompts(settings)
        self._waiting = Waiting(settings.max_repairs)
        self._background = Background()
        self._lock = threading.Lock()
        self._gone: dict[str, ModelError] = {}
        self._patience = Patience(settings.give_up_after)
        self._choice = Choice(settings.models)
        self.ledger = Ledger(tokens, dollars, spent)
        self._clients = {
            model.name: Client(
                model, self._background, self.ledger, (transports or {}).get(model.name)
            )
            for model in settings.models
        }

    def start(self, request: Request) -> Future[Proposal | Note]:
        """Mend a near miss, if one is waiting; else change the parent, or write a first program;
        where there is a question, answer it."""
        return self._background.submit(self._answer(request))

    def propose(self, request: Request) -> Proposal:
        """The same, for whoever waits for it."""
        return self._background.run(self._propose(request))

    async def _answer(self, request: Request) -> Proposal | Note:
        if request.section(Question) is None:
            return await self._propose(request)
        messages = self._prompts.build(request).messages
        return await self._with_client(request.seed, None, lambda client: think(client, messages))

    async def _propose(self, request: Request) -> Proposal:
        # Who has decided what is to be done does not want something else mended.
        if request.section(Plan) is not None or request.section(Broken) is not None:
            return await self._write(request)
        parent = request.parent.candidate.content_hash if request.parent is not None else None
        missed = self._waiting.take(request.task, request.backend, parent)
        if missed is None:
            return await self._write(request)
        return await self._repair(missed, request)

    def learn(self, proposal: Proposal, evaluation: Evaluation) -> None:
        if proposal.proposer != self.name:
            return
        self._waiting.learn(proposal, evaluation)
        said, gain = proposal.conversation, gain_of(proposal, evaluation)
        if said is not None:
            self._choice.note(said.model, said.usage, gain.certain if gain is not None else 0.0)

    def close(self) -> None:
        """Give up what is under way, and close connections."""
        self._background.close()

    async def _write(self, request: Request) -> Proposal:
        prompt = self._prompts.build(request)
        base = Candidate(backend=request.backend, source="", name=_FIRST_NAME)
        parents: tuple[str, ...] = ()
        if request.parent is not None:
            base = request.parent.candidate
            beside = (elite.candidate.content_hash for elite in prompt.exemplars)
            parents = (base.content_hash, *beside)
        shown, details = prompt.parent, note_parent(request.parent)
        focus = focus_of(request)
        if shown.hidden and focus is not None:
            details[_FOLDED] = focus.workload
        broken = request.section(Broken)
        if broken is not None:
            base = broken.program.candidate
            shown = Folded(base.source)
        outcome = await self._ask(prompt.messages, base, shown, request.seed)
        return self._proposal(outcome, base, parents, details)

    async def _repair(self, missed: NearMiss, request: Request) -> Proposal:
        failed = missed.proposal
        assert failed.conversation is not None
        shown, workload = Folded(failed.candidate.source), failed.details.get(_FOLDED)
        if workload is not None:
            shown = self._prompts.folded(failed.candidate.source, request, workload)
        messages = follow_up(self._prompts, failed, shown, missed.evaluation)
        preferred = failed.conversation.model
        outcome = await self._ask(messages, failed.candidate, shown, request.seed, preferred)
        kept = (PARENT_SPEEDUP, _FOLDED)
        details = {name: failed.details[name] for name in kept if name in failed.details}
        details |= {"repairs": failed.candidate.content_hash, "repair_depth": depth(failed) + 1}
        return self._proposal(outcome, failed.candidate, failed.parents, details)

    async def _ask(
        self,
        messages: tuple[Message, ...],
        base: Candidate,
        shown: Folded,
        seed: int,
        preferred: str | None = None,
    ) -> Outcome:
        def recall(source: str) -> str:
            return self._recall(Candidate(backend=base.backend, source=source))

        return await self._with_client(
            seed,
            preferred,
            lambda client: converse(
                client, self._prompts, messages, shown, recall, asks_again=self._asks_again
            ),
        )

    async def _with_client(
        self, seed: int, preferred: str | None, ask: Callable[[Client], Awaitable[Said]]
    ) -> Said:
        """Ask a model, and another one where that will not answer in this run."""
        chance = random.Random(seed)
        while True:
            client = self._pick(chance, preferred)
            name = client.model.name
            try:
                outcome = await ask(client)
            except ModelError as error:
                if error.conversation is not None:
                    self._choice.note(name, error.conversation.usage, gain=0.0)
                trouble = self._patience.after(name, error)
                if trouble.lasting:
                    with self._lock:
                        self._gone.setdefault(name, trouble)
                        trouble.final = len(self._gone) == len(self._clients)
                # What was answered, of no use as it was, has cost something and is to be kept.
                if trouble.final or not error.lasting:
                    raise trouble from None
            else:
                self._patience.forgive(name)
                return outcome

    def _pick(self, chance: random.Random, preferred: str | None) -> Client:
        with self._lock:
            there = [client for name, client in self._clients.items() if name not in self._gone]
            if not there:
                last = next(reversed(self._gone.values()))
                error = type(last)(last.what, hint=last.hint)
                error.final = True
                raise error
        for client in there:
            if client.model.name == preferred:
                return client
        chosen = self._choice.draw([client.model for client in there], chance)
        return self._clients[chosen.name]

    def _proposal(
        self,
        outcome: Outcome,
        base: Candidate,
        parents: tuple[str, ...],
        details: dict[str, Any],
    ) -> Proposal:
        notes: dict[str, Any] = {"mode": outcome.program.mode, **details}
        if outcome.asked_again:
            notes["asked_again"] = True
        if outcome.estimated:
            notes["usage_estimated"] = True
        return Proposal(
            candidate=Candidate(
                backend=base.backend, source=outcome.program.source, name=base.name
            ),
            proposer=self.name,
            parents=parents,
            summary=outcome.program.summary,
            details=notes,
            conversation=outcome.conversation,
        )
