"""How asking a language model can fail: one class for each, with what happened and the remedy.

`transient` failures may go away by themselves: the client repeats the request, and a later step may
succeed. The others stay until the user mends something, so the model is not asked again.
"""

from __future__ import annotations

from kernel_smith.proposers.base import WorkerFailed


class ModelError(WorkerFailed):
    """No program came of asking a model."""

    exit_code = 3
    transient = False
    lasting = False


class Unreachable(ModelError):
    """Nobody answers at the address, or the connection broke."""

    transient = True


class Stalled(ModelError):
    """The server accepted the request, and then nothing came, or not in time."""

    transient = True


class ServerFailed(ModelError):
    """The server says that it failed (5xx, or an error in the stream)."""

    transient = True


class Garbled(ModelError):
    """What came is not an answer of the protocol."""

    transient = True


class RateLimited(ModelError):
    """The server asks to slow down. `wait` is how long, in seconds, where it says so."""

    transient = True

    def __init__(self, what: str, *, hint: str, wait: float | None = None) -> None:
        super().__init__(what, hint=hint)
        self.wait = wait


class KeyRefused(ModelError):
    """No key, a wrong one, or one without credit."""

    lasting = True


class ModelUnknown(ModelError):
    """The server knows no such model, or no such address."""

    lasting = True


class NotAnApi(ModelError):
    """Something else answers at the address, such as a web site."""

    lasting = True


class RequestRefused(ModelError):
    """The server does not take this request, e.g. because the prompt is too long."""


class Truncated(ModelError):
    """The answer reached its token limit before it was complete."""


class NoProgram(ModelError):
    """The model answered, twice, and there was no usable program in it."""


class GivenUp(ModelError):
    """So many answers in a row were of no use that the model is not asked any more."""

    lasting = True


class BudgetSpent(ModelError):
    """The tokens or dollars left do not cover another request.

    Requests `under_way` may take less than was set aside for them: without any, this is final.
    """

    def __init__(self, what: str, *, hint: str, under_way: int = 0) -> None:
        super().__init__(what, hint=hint)
        self.under_way = under_way
        self.lasting = not under_way


class Stopped(ModelError):
    """The client was closed while the request was under way."""
