"""What runs on a node of a Ray cluster: an engine there, in front of one device.

Records travel as JSON text and errors as records, so nothing of ours is pickled but this class.
"""

from __future__ import annotations

import os

from kernel_smith.errors import InternalError
from kernel_smith.evaluation.engines.choose import open_engine
from kernel_smith.records import Candidate, Evaluation, Options, Task
from kernel_smith.records.job import JobError

Told = tuple[str | None, str | None]
"""An evaluation or an error, as JSON."""


class DeviceActor:
    """`address` is that of the engine on the node; usually None, which is a pool of judges."""

    def __init__(self, address: str | None, lanes: int) -> None:
        # Ray sets it for its own processes; how many threads a candidate has is the judge's to say.
        os.environ.pop("OMP_NUM_THREADS", None)
        self._lanes = lanes
        self._opened = open_engine(address, lanes)
        self._engine = self._opened.__enter__()

    def capacity(self) -> int:
        """Whoever can answer this is ready."""
        return min(self._lanes, self._engine.capacity())

    def evaluate(self, task: str, candidate: str, options: str, beside: str | None) -> Told:
        try:
            future = self._engine.submit(
                Task.model_validate_json(task),
                Candidate.model_validate_json(candidate),
                Options.model_validate_json(options),
                beside=Candidate.model_validate_json(beside) if beside is not None else None,
            )
            return future.result().model_dump_json(), None
        except Exception as error:
            return None, JobError.of(error).model_dump_json()

    def close(self, hurry: bool) -> None:
        error = InternalError("the engine was closed") if hurry else None
        self._opened.__exit__(type(error) if error else None, error, None)


def read_answer(told: Told) -> Evaluation:
    """The evaluation; or raises the error, as the engine on the node did."""
    evaluation, error = told
    if error is not None:
        raise JobError.model_validate_json(error).as_exception()
    assert evaluation is not None
    return Evaluation.model_validate_json(evaluation)
