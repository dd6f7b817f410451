"""A service that evaluates only the tasks that whoever runs it has named."""

from __future__ import annotations

from pathlib import Path

import pytest
from serving import LONG, TASK, body, request, serving

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.remote import RemoteEngine
from kernel_smith.records import Candidate

ALLOWED = frozenset({TASK.content_hash})
OTHER = TASK.model_copy(update={"source": "import os"})


def test_a_task_that_was_named_is_evaluated(tmp_path: Path) -> None:
    with serving(tmp_path, tasks=ALLOWED) as served, RemoteEngine(served.url) as remote:
        assert remote.submit(TASK, Candidate(source="# 1")).result(LONG).ok


def test_any_other_is_refused_by_every_route_and_nothing_of_it_is_kept(tmp_path: Path) -> None:
    wanted = {**body(), "task": OTHER.model_dump(mode="json")}
    pairs = [{"task": 0, "parent": None, "candidate": wanted["candidate"]}]
    bodies = {
        "/v1/jobs": wanted,
        "/v1/jobs/batch": {"requests": [body(1), wanted]},
        "/v1/rewards": {"tasks": [wanted["task"]], "pairs": pairs},
    }
    with serving(tmp_path, tasks=ALLOWED) as served:
        for route, sent in bodies.items():
            response = served.http.post(route, json=sent)
            assert response.status_code == 403, route
            assert "--task" in response.json()["hint"]
        assert served.http.get("/v1/jobs").json() == {"jobs": []}


def test_the_same_name_does_not_make_it_the_same_task(tmp_path: Path) -> None:
    assert OTHER.name == TASK.name
    with serving(tmp_path, tasks=ALLOWED) as served, RemoteEngine(served.url) as remote:
        refused = remote.submit(OTHER, request().candidate)
        with pytest.raises(BadInput, match="not among those"):
            refused.result(LONG)
