"""`Refused`: why a class did not become a task. A named reason, and what it was about."""

from __future__ import annotations


class Refused(Exception):
    """The reason is one of a few names, for counting; the detail is for people."""

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail
