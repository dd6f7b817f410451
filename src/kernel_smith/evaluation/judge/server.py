"""Answers the engine's requests, and uses idle time to redraw secrets and to clear up."""

from __future__ import annotations

import os
import select
import traceback
from typing import Any

import torch

from kernel_smith.errors import InternalError, UserError
from kernel_smith.evaluation.judge.inputs.admission import examine
from kernel_smith.evaluation.judge.inputs.first_look import look_at
from kernel_smith.evaluation.judge.inputs.reference import Reference
from kernel_smith.evaluation.judge.judge import Judge
from kernel_smith.evaluation.judge.platform import host_memory
from kernel_smith.evaluation.judge.processes.pool import ProcessPool
from kernel_smith.evaluation.sandbox.wire import Channel, WireClosed
from kernel_smith.records import Candidate, Options, Task

_IDLE_AFTER_MS = 100  # one who asks again and again does not want to wait for house-keeping
_LOOK_ROUND_MS = 500  # whether another judge needs memory


class Server:
    def __init__(self, channel: Channel, processes: ProcessPool) -> None:
        self._channel = channel
        self._processes = processes
        self._allowed = os.sched_getaffinity(0)
        self._judge: Judge | None = None
        self._cores: tuple[int, ...] | None = None

    def serve(self) -> None:
        """Answer until the engine hangs up."""
        handlers = {
            "evaluate": self._evaluate,
            "sweep": self._sweep,
            "examine": self._examine,
            "processes": self._ids,
        }
        try:
            while True:
                self._work_while_idle()
                request = self._channel.receive()
                self._channel.send(self._answer(handlers[request["op"]], request))
        except WireClosed:
            pass
        finally:
            if self._judge is not None:
                self._judge.close()
            self._processes.close()

    def _answer(self, handler: Any, request: dict[str, Any]) -> dict[str, Any]:
        try:
            return {"event": "done", **handler(request)}
        except UserError as error:
            kind = type(error).__name__
            return {"event": "error", "kind": kind, "what": error.what, "hint": error.hint}
        except InternalError as error:
            return {"event": "error", "kind": "InternalError", "what": str(error)}
        except Exception:
            return {"event": "error", "kind": "InternalError", "what": traceback.format_exc()}

    def _evaluate(self, request: dict[str, Any]) -> dict[str, Any]:
        task = Task.model_validate(request["task"])
        candidate = Candidate.model_validate(request["candidate"])
        options = Options.model_validate(request["options"])
        beside = Candidate.model_validate(request["beside"]) if request["beside"] else None
        evaluation = self._judge_on(options.cores).evaluate(
            task, candidate, options, self._report_progress, beside
        )
        return {"evaluation": evaluation.model_dump(mode="json")}

    def _sweep(self, request: dict[str, Any]) -> dict[str, Any]:
        task = Task.model_validate(request["task"])
        parent = Candidate.model_validate(request["parent"])
        options = Options.model_validate(request["options"])
        sweep = self._judge_on(options.cores).sweep(
            task,
            parent,
            request["variants"],
            options,
            request["seconds"],
            self._report_progress,
            everybody=request["everybody"],
        )
        return {"sweep": sweep.model_dump(mode="json")}

    def _examine(self, request: dict[str, Any]) -> dict[str, Any]:
        task = Task.model_validate(request["task"])
        reference, budget = Reference(task), host_memory.budget()
        found = []
        for workload in task.workloads:
            host_memory.demand(task, workload)
            look = look_at(reference, workload, budget)
            found += examine(reference, workload, budget, look).found
        return {"found": [{"workload": f.workload, "finding": f.finding.value} for f in found]}

    def _ids(self, request: dict[str, Any]) -> dict[str, Any]:
        return {"judge": os.getpid(), "zygote": self._processes.zygote_pid}

    def _judge_on(self, cores: tuple[int, ...] | None) -> Judge:
        """The judge for these cores; another choice of cores needs another judge."""
        if self._judge is not None and cores != self._cores:
            self._judge.close()
            self._judge = None
        if self._judge is None:
            # An earlier judge kept to its own cores; this one chooses among all of ours again.
            os.sched_setaffinity(0, self._allowed)
            self._judge = Judge(self._processes, cores)
            self._cores = cores
            os.sched_setaffinity(0, self._judge.place.judge)
            torch.set_num_threads(len(self._judge.place.judge))
        return self._judge

    def _report_progress(self, what: str) -> None:
        self._channel.send({"event": "progress", "what": what})

    def _work_while_idle(self) -> None:
        poller = select.poll()
        poller.register(self._channel.fileno(), select.POLLIN)
        patience = _IDLE_AFTER_MS
        while not poller.poll(patience):
            if self._judge is None:
                return
            if self._judge.use_idle_time():
                patience = 0
            elif self._judge.holds_device:
                patience = _LOOK_ROUND_MS
            else:
                return
