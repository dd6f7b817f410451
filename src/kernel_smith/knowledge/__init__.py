"""What is known about fast kernels: short guides, and what moves have gained where we measured.

`sections_for` chooses what one task on one machine can use; `find_topic` is for readers.
"""

from kernel_smith.knowledge.choosing import sections_for, this_machine
from kernel_smith.knowledge.guides import Guide, Section, all_guides, find_topic

__all__ = ["Guide", "Section", "all_guides", "find_topic", "sections_for", "this_machine"]
