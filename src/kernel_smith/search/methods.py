"""The methods of search, by name: ours, and those that other packages offer.

A package offers one by an entry point of the group `kernel_smith.methods`, which names what makes a
`Strategy` of a run's configuration.
"""

from __future__ import annotations

from collections.abc import Callable

from kernel_smith.errors import BadInput, MissingPrerequisite
from kernel_smith.plugins import load_method, offered_methods
from kernel_smith.records import RunConfig
from kernel_smith.search.base import Strategy
from kernel_smith.search.contrast import Contrastive
from kernel_smith.search.greedy import Greedy
from kernel_smith.search.independent import Independent
from kernel_smith.search.islands.islands import Islands
from kernel_smith.search.offered import Offered
from kernel_smith.search.plan_edit import PlanEdit
from kernel_smith.search.queue import Queue
from kernel_smith.search.roles import Roles
from kernel_smith.search.scientist import Scientist
from kernel_smith.search.uct import Uct

MakeStrategy = Callable[[RunConfig], Strategy]

METHODS: dict[str, MakeStrategy] = {
    "islands": Islands,
    "paper": Islands.of_the_paper,
    "greedy": Greedy,
    "refinement": Greedy,
    "uct": Uct,
    "contrast": Contrastive,
    "plan-edit": PlanEdit,
    "queue": Queue,
    "scientist": Scientist,
    "roles": Roles,
    "best-of-n": Independent,
    "one-shot": Independent.one_shot,
}


def make_strategy(config: RunConfig) -> Strategy:
    """Make the method that a run's configuration names, before anything happened."""
    make = find_method(config.method)
    return make(config) if config.method in METHODS else Offered(config, make)


def find_method(name: str) -> MakeStrategy:
    if name in METHODS:
        return METHODS[name]
    if name in offered_methods():
        made: MakeStrategy = load_method(name)
        if not callable(made):
            raise MissingPrerequisite(
                f"method {name} is a {type(made).__name__}, expected a class",
                hint="mend or uninstall the package that offers it",
            )
        return made
    known = ", ".join((*METHODS, *offered_methods()))
    raise BadInput(f"no method is called {name!r}", hint=f"choose one of: {known}")
