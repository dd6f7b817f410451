"""An engine that evaluates nothing: it makes up an evaluation at once, or after a while.

For tests and benchmarks of what happens around evaluations.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor

from kernel_smith.evaluation.engines.made_up import made_up, made_up_beside
from kernel_smith.records import Candidate, Evaluation, Options, Reason, Task

Judgement = Callable[[Candidate], float | Reason]
"""The speedup of a candidate, or why it has none."""


class TrivialEngine:
    """Evaluates by a function; remembers what it was asked, and how long it was busy.

    `at_length`: what it says instead where torch.compile is among the baselines, as in the end of a
    run.
    """

    def __init__(
        self,
        judge: Judgement,
        *,
        at_length: Judgement | None = None,
        seconds: float = 0.0,
        lanes: int = 1,
    ) -> None:
        self._judge = judge
        self._at_length = at_length or judge
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(lanes)
        self._lock = threading.Lock()
        self.evaluated: list[str] = []
        self.busy_seconds = 0.0

    def submit(
        self,
        task: Task,
        candidate: Candidate,
        options: Options | None = None,
        *,
        beside: Candidate | None = None,
    ) -> Future[Evaluation]:
        options = options or Options()
        if self._seconds:
            return self._threads.submit(self._evaluate, task, candidate, options, beside)
        future: Future[Evaluation] = Future()
        future.set_result(self._evaluate(task, candidate, options, beside))
        return future

    def _evaluate(
        self, task: Task, candidate: Candidate, options: Options, beside: Candidate | None
    ) -> Evaluation:
        if self._seconds:
            time.sleep(self._seconds)
        with self._lock:
            self.evaluated.append(candidate.content_hash)
            self.busy_seconds += self._seconds
        judge = self._at_length if "compile" in options.baselines else self._judge
        judged = made_up(task, candidate, judge(candidate), baselines=options.baselines)
        if beside is None:
            return judged
        return made_up_beside(judged, made_up(task, beside, judge(beside)))
