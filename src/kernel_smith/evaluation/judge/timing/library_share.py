"""For tasks that forbid the library, on a CPU: how much of the calls' own time was the library's?

Timed batches are sampled, and of few samples some fall on the library by chance. So there are three
answers: surely too much, surely not, and not known yet, in which case more batches are timed.
Nobody is accused by chance, and nobody is accepted because few samples came in.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from kernel_smith.evaluation.judge.rejection import Rejected, Suspected
from kernel_smith.records import KernelShare, Reason

_SHARE = 0.1
_SECONDS = 30e-6  # allocating and looking at a handful of tensors costs up to 20
_PLENTY = 1500  # samples, after which the share is known to a few hundredths
_SURE = 2.0  # standard errors

# Bindings, tensor objects and allocators: there is no arithmetic in them to be borrowed.
_GLUE = frozenset({"libtorch_python.so", "libc10.so"})


@dataclass(frozen=True)
class LibraryShare:
    """What part of so many samples fell on the library, and what part of the time it may have."""

    share: float
    samples: int
    allowed: float

    @classmethod
    def of(cls, shares: Sequence[KernelShare], seconds_per_call: float) -> LibraryShare:
        """Allocating results goes through the library, and is allowed: it takes a small share, or a
        short time. Code of unknown origin counts as the library's: it may be a copy of it.
        `seconds_per_call` is processor time, as the shares are: a busy machine stretches wall time.
        """
        share = min(sum(s.share for s in shares if _may_compute(s)), 1.0)
        allowed = max(_SHARE, _SECONDS / max(seconds_per_call, 1e-9))
        return cls(share, sum(s.samples for s in shares), allowed)

    @property
    def is_too_large(self) -> bool:
        """Beyond doubt."""
        return self.allowed < 1 and self._bounds()[0] > self.allowed

    @property
    def is_settled(self) -> bool:
        """Would more samples change nothing? Of plenty, a share about as large as is allowed is."""
        if self.allowed >= 1 or self.is_too_large or self.samples >= _PLENTY:
            return True
        return self._bounds()[1] <= self.allowed

    def _bounds(self) -> tuple[float, float]:
        """Wilson's interval: it also says how little a few samples tell where none fell on it."""
        if not self.samples:
            return 0.0, 1.0
        weight = _SURE**2 / self.samples
        spread = self.share * (1 - self.share) / self.samples + weight / self.samples / 4
        middle, half = self.share + weight / 2, _SURE * math.sqrt(spread)
        return (middle - half) / (1 + weight), (middle + half) / (1 + weight)


def check_library_share(shares: Sequence[KernelShare], seconds_per_call: float) -> None:
    """Raise `Rejected` where the library surely had too much of the time."""
    found = LibraryShare.of(shares, seconds_per_call)
    if found.is_too_large:
        raise Rejected(
            Reason.LIBRARY_FORBIDDEN,
            f"{found.share:.0%} of the time ({found.share * seconds_per_call * 1e6:.0f} us per "
            "call) was spent in the library or in code of unknown origin",
            kernels=tuple(shares),
        )


def check_settled(shares: Sequence[KernelShare], seconds_per_call: float) -> None:
    """Raise `Suspected` where too few samples came in to say: nobody is accepted for that."""
    found = LibraryShare.of(shares, seconds_per_call)
    if not found.is_settled:
        raise Suspected(
            Reason.TOO_NOISY,
            f"this task forbids the library: {found.share:.0%} of {found.samples} samples fell on "
            f"it, which are too few to say whether more than {found.allowed:.0%} of the time did",
            kernels=tuple(shares),
        )


def _may_compute(share: KernelShare) -> bool:
    if share.origin == "library":
        return share.module not in _GLUE
    return share.origin == "unknown"
