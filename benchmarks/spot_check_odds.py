"""With what chance is a program found out that computes several calls at once, in some batches?

The judge looks into a batch after some of the rounds that it times, often at first and ever more
rarely later. `--found` is the chance that one such look at one such batch finds out: a batch may be
over before the judge comes. The rest follows.

    python benchmarks/spot_check_odds.py [--found 0.6] [--rounds 10 50 200]
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from kernel_smith.evaluation.judge.timing.spot_rounds import FEWEST, chance_after

SHARES = (1.0, 0.5, 0.25, 0.1)


def looks(rounds: int) -> float:
    """How many there are on average, those at the end included that make up the number."""
    return max(FEWEST, sum(chance_after(n) for n in range(1, rounds + 1)))


def odds(batches: Sequence[float], found: float) -> float:
    """The chance to be found out. `batches`: with what chance each one was computed at once."""
    meanwhile = [chance_after(n) for n in range(1, len(batches) + 1)]
    at_the_end = max(0.0, FEWEST - sum(meanwhile))
    missed = math.prod(1 - c * b * found for c, b in zip(meanwhile, batches, strict=True))
    return 1 - missed * (1 - batches[-1] * found) ** at_the_end


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--found", type=float, default=0.6)
    parser.add_argument("--rounds", type=int, nargs="+", default=[10, 50, 200])
    arguments = parser.parse_args()
    shares = " | ".join(f"{share:.0%} of batches" for share in SHARES)
    print(f"| rounds | looks | {shares} | all of the second half |")
    print("|---|---|" + "---|" * (len(SHARES) + 1))
    for rounds in arguments.rounds:
        first = rounds // 2
        behaviours = [[share] * rounds for share in SHARES]
        behaviours.append([0.0] * first + [1.0] * (rounds - first))
        caught = " | ".join(f"{odds(each, arguments.found):.0%}" for each in behaviours)
        print(f"| {rounds} | {looks(rounds):.0f} | {caught} |")


if __name__ == "__main__":
    main()
