"""What a program is apart from its wording: the same, alike, or of which kind."""

from kernel_smith.programs.likeness import alike
from kernel_smith.programs.normalise import fingerprint
from kernel_smith.programs.techniques import techniques

__all__ = ["alike", "fingerprint", "techniques"]
