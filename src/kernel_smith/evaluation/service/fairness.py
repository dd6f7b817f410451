"""Whose turn it is: fair queueing between clients, counted in seconds of evaluation.

Each client has an account of the seconds that it was served. While a job runs, what the client's
jobs usually take is pending beside it, so that several jobs taken at once are shared out as well.
The client with the least, both together, comes first.

A client that comes, or comes back, starts level with the least served of those who have jobs: it
has saved nothing up while it was away, and cannot hold up those who stayed. Pending seconds do not
count there, since a guess that was too high would hold up the newcomer. Where nobody has jobs, it
starts at the level: the account of whoever was served last. What it had used beyond that is
forgotten while it is away.
"""

from __future__ import annotations

import math

FIRST_GUESS = 1.0  # seconds; what a job takes, before a client's first one has ended
HALF_LIFE = 600.0  # seconds away until half of what a client owes is forgotten
LEAST_CHARGE = 0.05  # seconds; handing out thousands of jobs that end at once is work as well
MOST_CHARGE = 600.0  # seconds; a clock that jumps ahead must not silence a client for hours

_NEWEST = 0.2  # the weight of the last job in what a client's jobs usually take


def account_on_return(account: float, start: float, seconds_away: float) -> float:
    """What a client begins with when it has jobs again; others in its place would have `start`."""
    owed = max(0.0, account - start)
    return start + owed * math.exp2(-max(0.0, seconds_away) / HALF_LIFE)


def charge(seconds: float) -> float:
    """What a job that took this long, or is guessed to, costs its client."""
    return min(max(LEAST_CHARGE, seconds), MOST_CHARGE)


def usual_seconds(before: float, seconds: float) -> float:
    """What a client's jobs usually take, now that another one has ended."""
    return before + _NEWEST * (seconds - before)
