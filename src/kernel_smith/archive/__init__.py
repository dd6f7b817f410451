"""The archive: islands of cells that keep the best programs of every kind."""

from kernel_smith.archive.archive import Archive, ArchiveConfig, Migration
from kernel_smith.archive.features import FEATURES, PAPER_FEATURES, CellKey, Feature
from kernel_smith.archive.outcome import Added, Outcome

__all__ = [
    "FEATURES",
    "PAPER_FEATURES",
    "Added",
    "Archive",
    "ArchiveConfig",
    "CellKey",
    "Feature",
    "Migration",
    "Outcome",
]
