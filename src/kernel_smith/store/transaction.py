"""All or nothing, on a connection that begins no transactions by itself."""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator


@contextlib.contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
        connection.execute("COMMIT")
    except BaseException:
        # SQLite rolls back by itself after some failures, such as a full disk.
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
