"""The run store: every event of every run, in one SQLite file that survives a crash."""

from kernel_smith.store.facts import OUTSIDE, RunFacts
from kernel_smith.store.faults import StoreError
from kernel_smith.store.history import History, StepFacts
from kernel_smith.store.locks import RunLock
from kernel_smith.store.ranking import Ranking
from kernel_smith.store.store import Store, default_path
from kernel_smith.store.summary import RunSummary

__all__ = [
    "OUTSIDE",
    "History",
    "Ranking",
    "RunFacts",
    "RunLock",
    "RunSummary",
    "StepFacts",
    "Store",
    "StoreError",
    "default_path",
]
