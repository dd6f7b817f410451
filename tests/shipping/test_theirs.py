"""A function is taken out of a checkout with what it needs, and becomes a task's reference."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest
import torch

from kernel_smith.errors import BadInput
from kernel_smith.records import Task, Workload
from kernel_smith.shipping.theirs import take_function
from kernel_smith.shipping.verify import held_against

FILES = {
    "serving/__init__.py": "raise RuntimeError('nothing of it is imported')\n",
    "serving/utils/__init__.py": "from serving.utils.common import *\n",
    "serving/utils/common.py": """
        import functools
        import no_such_package

        logger = no_such_package.logger()

        @functools.lru_cache(maxsize=1)
        def factor():
            return 2.0
    """,
    "serving/ops/__init__.py": "",
    "serving/ops/scale.py": """
        from typing import TYPE_CHECKING

        import torch

        from ..utils import factor as how_much
        from .shapes import flat

        if TYPE_CHECKING:
            from serving.pool import Pool

        TWICE = how_much()
        if TWICE > 1:
            offset = 0.5
        else:
            offset = 0.0

        def unused():
            return how_much() / 0

        def scaled(x, pool: "Pool" = None):
            return (flat(x) * TWICE + offset).view_as(x)

        def whole_module(x):
            from . import shapes
            return shapes.flat(x)
    """,
    "serving/ops/shapes.py": """
        def flat(x):
            return x.reshape(-1)
    """,
    "serving/ops/modules.py": """
        from . import shapes

        def flat(x):
            return shapes.flat(x)
    """,
    "serving/ops/twice.py": """
        from .shapes import flat as first

        def flat(x):
            return first(x)
    """,
}
TASK = """
import torch


class Model(torch.nn.Module):
    def forward(self, x):
        return x * 2 + 0.5


def get_inputs(rows=4):
    return [torch.randn(rows, 8)]
"""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), "utf-8")
    return tmp_path


def test_a_function_stands_alone_with_what_it_needs(checkout: Path) -> None:
    taken = take_function(checkout, checkout / "serving/ops/scale.py", "scaled")
    space: dict[str, object] = {}
    exec(taken.text, space)
    x = torch.randn(3, 5)
    torch.testing.assert_close(space["scaled"](x), x * 2 + 0.5)  # type: ignore[operator]
    assert "unused" not in space and "no_such_package" not in taken.text
    read = {str(path.relative_to(checkout)) for path in taken.files}
    assert read == {
        "serving/ops/scale.py",
        "serving/ops/shapes.py",
        "serving/utils/__init__.py",
        "serving/utils/common.py",
    }


@pytest.mark.parametrize(
    ("file", "function", "says"),
    [
        ("serving/ops/scale.py", "missing", "nothing there is called 'missing'"),
        ("serving/ops/none.py", "flat", "cannot be read"),
        ("serving/ops/modules.py", "flat", "takes a whole module"),
        ("serving/ops/twice.py", "flat", "`flat` is defined in"),
    ],
)
def test_what_cannot_be_taken_is_named(checkout: Path, file: str, function: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        take_function(checkout, checkout / file, function)


def own_task(source: str = TASK) -> Task:
    return Task(name="scale", source=source, workloads=(Workload(name="default"),))


def test_the_reference_is_theirs_and_double_precision_the_tasks(checkout: Path) -> None:
    wrong = "def theirs(x):\n    return x\n"
    task = held_against(own_task(), wrong, "theirs(x)", "a checkout")
    space: dict[str, object] = {}
    exec(task.source, space)
    model = space["Model"]()  # type: ignore[operator]
    x = torch.ones(2)
    assert torch.equal(model(x), x)
    assert torch.equal(model(x.double()), x.double() * 2 + 0.5)
    inexact = held_against(own_task(), wrong, "y = theirs(x)\nreturn y", "it", exact=False)
    exec(inexact.source, space)
    assert torch.equal(space["Model"]()(x.double()), x.double())  # type: ignore[operator]


@pytest.mark.parametrize(
    ("task", "theirs", "call", "says"),
    [
        (TASK, "def get_inputs(x): ...", "get_inputs(x)", "`get_inputs` is a name of task"),
        (TASK, "torch = 1", "torch", "`torch` is a name of task"),
        (TASK, "", "theirs(x", "is no Python"),
        ("class Model: ...", "", "x", "no forward with named arguments"),
    ],
)
def test_calls_that_make_no_task_are_refused(task: str, theirs: str, call: str, says: str) -> None:
    with pytest.raises(BadInput, match=says):
        held_against(own_task(task), theirs, call, "it")
