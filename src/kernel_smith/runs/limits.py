"""The budget of a run whose user names some limits."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from kernel_smith.errors import BadInput
from kernel_smith.records import Budget


def limited(budget: Budget, limits: Mapping[str, Any]) -> Budget:
    """Return the budget with those limits that are not None in place of its own."""
    given = {name: value for name, value in limits.items() if value is not None}
    if given:
        # One who names a limit does not want to be stopped by another that nobody mentioned,
        # unless it is one on what costs money.
        plateau = None if "evaluations" in given else budget.plateau
        budget = Budget(plateau=plateau, tokens=budget.tokens, dollars=budget.dollars)
    try:
        return Budget.model_validate({**budget.model_dump(), **given})
    except ValidationError as error:
        first = error.errors()[0]
        raise BadInput(
            f"a limit of {first['input']} {first['loc'][0]}: {first['msg']}",
            hint="leave out the limit where nothing is to be limited",
        ) from None
