"""What tells candidates apart, beside their speed: the dimensions of the archive's cells.

Each feature puts a candidate in one of a few named bins, from its source and its evaluation.
`FEATURES` lists them by name. The cells of an archive are the combinations of the bins of the
features that were chosen.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from kernel_smith.errors import BadInput
from kernel_smith.inline.signature import prototypes
from kernel_smith.programs.normalise import program
from kernel_smith.programs.techniques import TECHNIQUES, most_telling
from kernel_smith.records import Elite, score

CellKey = tuple[str, ...]
"""One bin per feature."""


@dataclass(frozen=True)
class Feature:
    name: str
    description: str
    bins: tuple[str, ...]
    of: Callable[[Elite], str]


def features_named(names: Sequence[str]) -> tuple[Feature, ...]:
    """Return the features with these names, in this order."""
    unknown = [name for name in names if name not in FEATURES]
    if unknown or not names or len(set(names)) < len(names):
        what = f"no feature is called {unknown[0]!r}" if unknown else "features must differ"
        raise BadInput(
            what if names else "no feature was chosen",
            hint=f"choose one or more of: {', '.join(FEATURES)}",
        )
    return tuple(FEATURES[name] for name in names)


_SIZES = (64, 128, 256, 512, 1024, 2048, 4096)
_SIZE_BINS = (*(f"<={size}" for size in _SIZES), f">{_SIZES[-1]}")

_LAUNCHES = (0, 1, 2, 4, 8)
_LAUNCH_BINS = ("0", "1", "2", "3-4", "5-8", ">8")

_SPEEDUPS = (0.5, 1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0)
_SPEEDUP_BINS = ("<0.5", *(f">={speedup:g}" for speedup in _SPEEDUPS))

_BOUNDS = ("memory", "compute", "launch", "library", "unknown")
_OVERHEAD = frozenset({"interpreter", "runtime", "kernel"})
_MOST_OF_THE_TIME = 0.5


def _complexity(elite: Elite) -> str:
    return _SIZE_BINS[bisect_left(_SIZES, program(elite.candidate.source).size)]


def _launches(elite: Elite) -> str:
    return _LAUNCH_BINS[bisect_left(_LAUNCHES, _authored_launches(elite))]


def _authored_launches(elite: Elite) -> float:
    """As observed where a GPU was, and as written otherwise."""
    observed = elite.evaluation.device_kernels
    if observed:
        return sum(kernel.launches for kernel in observed if kernel.origin == "authored")
    code = program(elite.candidate.source)
    if elite.candidate.backend == "triton":
        return code.launch_sites
    return len(prototypes(code.kernel_text))


def _bottleneck(elite: Elite) -> str:
    evaluation = elite.evaluation
    if evaluation.rooflines:
        seconds: dict[str, float] = defaultdict(float)
        for roofline in evaluation.rooflines:
            seconds[roofline.bound] += roofline.seconds
        return max(seconds, key=lambda bound: seconds[bound])
    # Samples on the CPU say whose code ran. Whether memory or arithmetic held it up they do not.
    overhead = sum(part.share for part in evaluation.kernels if part.origin in _OVERHEAD)
    library = sum(part.share for part in evaluation.kernels if part.origin == "library")
    if overhead > _MOST_OF_THE_TIME:
        return "launch"
    return "library" if library > _MOST_OF_THE_TIME else "unknown"


def _technique(elite: Elite) -> str:
    return most_telling(elite.candidate)


def _speedup(elite: Elite) -> str:
    return _SPEEDUP_BINS[bisect_right(_SPEEDUPS, score(elite.evaluation))]


_ALL = (
    Feature(
        "complexity",
        "size of the code without comments and formatting, in powers of two",
        _SIZE_BINS,
        _complexity,
    ),
    Feature(
        "launches",
        "authored kernels per call on a GPU; otherwise kernels that the source launches or exports",
        _LAUNCH_BINS,
        _launches,
    ),
    Feature(
        "bottleneck",
        "what bounds most of the time; on the CPU only work outside of kernels is told apart",
        _BOUNDS,
        _bottleneck,
    ),
    Feature("technique", "the most telling technique in the source", TECHNIQUES, _technique),
    Feature("score", "the speedup that is certain", _SPEEDUP_BINS, _speedup),
)

FEATURES: dict[str, Feature] = {feature.name: feature for feature in _ALL}
