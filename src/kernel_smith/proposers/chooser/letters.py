"""A menu as a question to a language model, whose whole answer is the letter of an option.

Nothing is decoded: what the first token of the answer could be, and how likely each is, is the
policy. A chat server lists the likeliest of them alone, so letters may be missing from its list.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from kernel_smith.proposers.chooser.options import Menu
from kernel_smith.proposers.chooser.state import state_text
from kernel_smith.records import Interval
from kernel_smith.records.prose import describe_speedup

_ASK = "Which of these changes makes the program fastest? Answer with its letter alone."


def question_text(menu: Menu, speedup: Interval | None) -> str:
    """Return the question. `speedup`: of the parent over eager; None: it was not timed."""
    speed = describe_speedup(speedup, "eager") if speedup is not None else "not timed"
    return f"{state_text(menu, f'ok: correct, {speed}.')}\n\n{_ASK}\nAnswer:"


def odds_of(labels: Sequence[str], listed: Mapping[str, float]) -> list[float] | None:
    """Return the odds of letters, from the log-probabilities of the tokens that a server lists.

    A letter that is not listed is at most as likely as the last that is, and all that are not
    listed share what is left; None where no letter is listed at all.
    """
    shares = [
        sum(math.exp(each) for token, each in listed.items() if token.strip() == label)
        for label in labels
    ]
    if not any(shares):
        return None
    unlisted = shares.count(0.0)
    if unlisted:
        known = [math.exp(each) for each in listed.values()]
        each = min(min(known), max(1 - sum(known), 0.0) / unlisted)
        shares = [share or each for share in shares]
    total = sum(shares)
    return [share / total for share in shares]
