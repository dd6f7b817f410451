"""Edits of a parent as a proposal, and what a proposal made earlier tells of them."""

from __future__ import annotations

from collections.abc import Sequence

from kernel_smith.proposers.credit import note_parent
from kernel_smith.proposers.mutator.edit import Edit, Site
from kernel_smith.records import Candidate, Elite, Evaluation, Proposal

_PARENT_BINARY = "parent_binary"


def make_proposal(
    proposer: str, parent: Elite, new: Candidate, steps: Sequence[tuple[Edit, Site]]
) -> Proposal:
    """Return a candidate with the edits that made it, in their order."""
    return Proposal(
        candidate=new,
        proposer=proposer,
        parents=(parent.candidate.content_hash,),
        summary="; then ".join(f"{edit.name}: {site}" for edit, site in steps),
        details={
            "edits": [edit.name for edit, _ in steps],
            "sites": [f"{site.part}: {site}" for _, site in steps],
            _PARENT_BINARY: parent.evaluation.binary,
            **note_parent(parent),
        },
    )


def signature_of(proposal: Proposal) -> str:
    """Return the signature of a proposal made earlier, perhaps before the run was resumed."""
    pairs = zip(proposal.details["edits"], proposal.details["sites"], strict=True)
    return " | ".join(f"{name} {site}" for name, site in pairs)


def left_no_trace(proposal: Proposal, evaluation: Evaluation) -> bool:
    """Tell whether a proposal compiles to the same as its parent."""
    binary = evaluation.binary
    return binary is not None and binary == proposal.details.get(_PARENT_BINARY)
