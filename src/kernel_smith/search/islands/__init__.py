"""The archive: islands of cells that keep the best programs of every kind."""

from kernel_smith.search.islands.archive import Archive, ArchiveConfig, Migration
from kernel_smith.search.islands.features import FEATURES, CellKey, Feature
from kernel_smith.search.islands.outcome import Added, Outcome

__all__ = [
    "FEATURES",
    "Added",
    "Archive",
    "ArchiveConfig",
    "CellKey",
    "Feature",
    "Migration",
    "Outcome",
]
