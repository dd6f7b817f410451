"""The routes of the service, asked over a real connection."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path
from typing import Any

import httpx
import pytest
from serving import Served, body, http_client, serving, until

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.engines.made_up import made_up
from kernel_smith.evaluation.service.book import BookLimits
from kernel_smith.records import (
    MAX_SOURCE,
    Candidate,
    Evaluation,
    Job,
    Options,
    Reason,
    Task,
)
from kernel_smith.testing.trivial import TrivialEngine


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """For requests that leave nothing behind."""
    with serving(tmp_path_factory.mktemp("refusing"), capacity=0) as served:
        yield served


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path) as served:
        yield served


@pytest.fixture
def idle(tmp_path: Path) -> Iterator[Served]:
    """Takes jobs and begins none."""
    with serving(tmp_path, capacity=0) as served:
        yield served


class HeldEngine:
    """Answers when it is told to."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.futures: list[tuple[Task, Candidate, Future[Evaluation]]] = []

    def submit(
        self, task: Task, candidate: Candidate, options: Options, /, **more: Any
    ) -> Future[Evaluation]:
        future: Future[Evaluation] = Future()
        self.futures.append((task, candidate, future))
        self.begun.set()
        return future

    def release(self) -> None:
        for task, candidate, future in self.futures:
            future.set_result(made_up(task, candidate, 3.0))


def _problem(response: httpx.Response, status: int) -> dict[str, str]:
    assert response.status_code == status, response.text
    told = response.json()
    assert set(told) == {"error", "hint"}
    assert "Traceback" not in response.text
    return told


def _post(http: httpx.Client, content: bytes | str, **headers: str) -> httpx.Response:
    return http.post(
        "/v1/jobs", content=content, headers={"Content-Type": "application/json", **headers}
    )


def test_a_job_is_accepted_evaluated_and_told(served: Served) -> None:
    submitted = served.http.post("/v1/jobs", json=body())
    assert submitted.status_code == 202
    job = Job.model_validate_json(submitted.content)
    done = served.http.get(f"/v1/jobs/{job.id}", params={"wait": 20})
    assert done.status_code == 200
    told = Job.model_validate_json(done.content)
    assert told.state == "done"
    assert told.evaluation is not None
    assert told.evaluation.timing is not None
    assert told.evaluation.timing.speedups[0].speedup.value == 2.0


def test_the_same_request_again_is_the_same_job_with_status_200(served: Served) -> None:
    first = served.http.post("/v1/jobs", json=body())
    served.http.get(f"/v1/jobs/{first.json()['id']}", params={"wait": 20})
    second = served.http.post("/v1/jobs", json=body())
    assert second.status_code == 200
    assert second.json()["id"] == first.json()["id"]
    assert second.json()["evaluation"] is not None


def test_a_batch_is_answered_in_order(idle: Served) -> None:
    requests = [body(number) for number in (3, 1, 2, 1)]
    response = idle.http.post("/v1/jobs/batch", json={"requests": requests})
    assert response.status_code == 202
    ids = [job["id"] for job in response.json()["jobs"]]
    assert ids[1] == ids[3]
    alone = [idle.http.post("/v1/jobs", json=each).json()["id"] for each in requests]
    assert ids == alone


def test_a_batch_that_does_not_fit_leaves_nothing_behind(tmp_path: Path) -> None:
    with serving(tmp_path, capacity=0, limits=BookLimits(waiting=2)) as served:
        requests = [body(number) for number in range(3)]
        full = served.http.post("/v1/jobs/batch", json={"requests": requests})
        _problem(full, 429)
        assert served.http.get("/v1/jobs").json() == {"jobs": []}


def test_a_full_queue_says_when_to_come_back(tmp_path: Path) -> None:
    with serving(tmp_path, capacity=0, limits=BookLimits(waiting=1)) as served:
        assert served.http.post("/v1/jobs", json=body(0)).status_code == 202
        full = served.http.post("/v1/jobs", json=body(1))
        _problem(full, 429)
        assert 1 <= int(full.headers["Retry-After"]) <= 60
        assert served.http.post("/v1/jobs", json=body(0)).status_code in (200, 202)


def test_several_jobs_are_read_at_once_as_each_alone(tmp_path: Path) -> None:
    engine = TrivialEngine(lambda c: 2.0 if "1" in c.source else Reason.WRONG_VALUES)
    with serving(tmp_path, engine) as served:
        ids = [served.http.post("/v1/jobs", json=body(n)).json()["id"] for n in (1, 2)]
        alone = [served.http.get(f"/v1/jobs/{job}", params={"wait": 20}).json() for job in ids]
        wanted = {"ids": [ids[1], "nobody's", ids[0]]}
        found = served.http.post("/v1/jobs/read", json=wanted).json()["jobs"]
    assert found == [alone[1], None, alone[0]]
    assert found[2]["evaluation"]["stage"] == "ok"


def test_what_waits_runs_or_failed_is_read_as_well(tmp_path: Path) -> None:
    with serving(tmp_path, capacity=0) as served:
        ids = [served.http.post("/v1/jobs", json=body(n)).json()["id"] for n in (1, 2)]
        served.http.delete(f"/v1/jobs/{ids[1]}")
        found = served.http.post("/v1/jobs/read", json={"ids": ids}).json()["jobs"]
    assert [job["state"] for job in found] == ["waiting", "cancelled"]
    assert [job["evaluation"] for job in found] == [None, None]


def test_waiting_ends_when_the_job_does(tmp_path: Path) -> None:
    engine = HeldEngine()
    with serving(tmp_path, engine) as served:
        job = served.http.post("/v1/jobs", json=body()).json()["id"]
        assert engine.begun.wait(120)
        assert served.http.get(f"/v1/jobs/{job}").json()["state"] == "running"
        threading.Timer(0.1, engine.release).start()
        told = served.http.get(f"/v1/jobs/{job}", params={"wait": 20}).json()
        assert told["state"] == "done"


def test_waiting_ends_when_the_time_is_over(idle: Served) -> None:
    job = idle.http.post("/v1/jobs", json=body()).json()["id"]
    assert idle.http.get(f"/v1/jobs/{job}", params={"wait": 0.05}).json()["state"] == "waiting"


@pytest.mark.parametrize("wait", ["61", "-1", "nan", "inf", "soon"])
def test_waiting_has_bounds(refusing: Served, wait: str) -> None:
    told = _problem(refusing.http.get("/v1/jobs/any", params={"wait": wait}), 422)
    assert told["error"].startswith("query.wait: ")


def test_many_who_wait_do_not_block_others(idle: Served) -> None:
    job = idle.http.post("/v1/jobs", json=body()).json()["id"]
    limits = httpx.Limits(max_connections=None)
    with http_client(limits=limits) as http:
        waiting = [  # more than a web server has threads for
            threading.Thread(target=http.get, args=(f"{idle.url}/v1/jobs/{job}?wait=20",))
            for _ in range(60)
        ]
        for thread in waiting:
            thread.start()
        assert idle.http.get("/v1/capacity").json()["waiting"] == 1
        assert idle.http.delete(f"/v1/jobs/{job}").json()["state"] == "cancelled"
        for thread in waiting:
            thread.join(30)
            assert not thread.is_alive()


def test_jobs_are_listed_by_state_and_page_without_evaluations(served: Served) -> None:
    ids = [served.http.post("/v1/jobs", json=body(number)).json()["id"] for number in range(3)]
    for job in ids:
        served.http.get(f"/v1/jobs/{job}", params={"wait": 20})
    listed = served.http.get("/v1/jobs", params={"state": "done", "limit": 2}).json()["jobs"]
    assert [job["id"] for job in listed] == ids[:2]
    assert "evaluation" not in listed[0]
    rest = served.http.get("/v1/jobs", params={"after": ids[1]}).json()["jobs"]
    assert [job["id"] for job in rest] == ids[2:]
    assert served.http.get("/v1/jobs", params={"state": "waiting"}).json() == {"jobs": []}
    _problem(served.http.get("/v1/jobs", params={"state": "asleep"}), 422)
    _problem(served.http.get("/v1/jobs", params={"limit": 0}), 422)
    _problem(served.http.get("/v1/jobs", params={"after": "nobody"}), 404)


def test_a_cancelled_job_stays_cancelled(idle: Served) -> None:
    job = idle.http.post("/v1/jobs", json=body()).json()["id"]
    assert idle.http.delete(f"/v1/jobs/{job}").json()["state"] == "cancelled"
    assert idle.http.delete(f"/v1/jobs/{job}").json()["state"] == "cancelled"
    again = idle.http.post("/v1/jobs", json=body())
    assert again.status_code == 202
    assert again.json()["id"] != job


@pytest.mark.parametrize("method", ["GET", "DELETE"])
def test_a_job_that_nobody_has_is_not_found(refusing: Served, method: str) -> None:
    _problem(refusing.http.request(method, "/v1/jobs/nothing"), 404)


def test_an_engine_that_fails_is_told_as_the_error_of_the_job(tmp_path: Path) -> None:
    def judge(candidate: Candidate) -> float:
        raise BadInput("this task is odd", hint="mend it")

    engine = TrivialEngine(judge, seconds=0.001)
    with serving(tmp_path, engine) as served:
        job = served.http.post("/v1/jobs", json=body()).json()["id"]
        told = served.http.get(f"/v1/jobs/{job}", params={"wait": 20}).json()
        assert told["state"] == "failed"
        assert told["error"] == {"kind": "bad-input", "what": "this task is odd", "hint": "mend it"}


def _events(lines: Iterator[str], count: int) -> list[tuple[int, dict[str, Any]]]:
    """The next events of a stream, with their numbers."""
    found: list[tuple[int, dict[str, Any]]] = []
    number = 0
    for line in lines:
        if line.startswith("id: "):
            number = int(line[4:])
        elif line.startswith("data: "):
            found.append((number, json.loads(line[6:])))
            if len(found) == count:
                break
    return found


def test_events_tell_changes_from_a_number_on(served: Served) -> None:
    first = served.http.post("/v1/jobs", json=body(0)).json()["id"]
    served.http.get(f"/v1/jobs/{first}", params={"wait": 20})
    with served.http.stream("GET", "/v1/events", params={"after": 0}) as stream:
        assert stream.headers["content-type"].startswith("text/event-stream")
        lines = stream.iter_lines()
        [(number, told)] = _events(lines, 1)
        assert (told["id"], told["state"]) == (first, "done")
        assert "evaluation" not in told
        second = served.http.post("/v1/jobs", json=body(1)).json()["id"]
        while told["id"] != second or told["state"] != "done":
            [(later, told)] = _events(lines, 1)
            assert later > number
            number = later


def test_events_without_a_number_begin_now(idle: Served) -> None:
    idle.http.post("/v1/jobs", json=body(0))
    with idle.http.stream("GET", "/v1/events") as stream:
        second = idle.http.post("/v1/jobs", json=body(1)).json()["id"]
        [(_, told)] = _events(stream.iter_lines(), 1)
        assert told["id"] == second


@pytest.mark.parametrize("after", ["-1", "x", "9999999999999999999999"])
def test_events_need_a_number(refusing: Served, after: str) -> None:
    told = _problem(refusing.http.get("/v1/events", params={"after": after}), 422)
    assert told["error"].startswith("query.after: ")


def test_what_is_too_large_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    with serving(tmp_path, capacity=0, max_body=10_000) as served:
        told = _problem(_post(served.http, b"{" * 10_001), 413)
        assert "10000" in told["error"]

        def pieces() -> Iterator[bytes]:
            for _ in range(100):
                yield b"{" * 1000

        headers = {"Content-Type": "application/json"}
        _problem(served.http.post("/v1/jobs", content=pieces(), headers=headers), 413)
        _problem(served.http.post("/v1/jobs/batch", content=pieces(), headers=headers), 413)
        assert _post(served.http, json.dumps(body())).status_code == 202


@pytest.mark.parametrize(
    "content", [b"", b"{", b"\xff\xfe", b"[" * 5000, b'{"task": "\\ud800"}'], ids=repr
)
def test_what_is_not_json_is_a_bad_request(refusing: Served, content: bytes) -> None:
    told = _problem(_post(refusing.http, content), 400)
    assert "not JSON" in told["error"]


def _changed(path: str, value: Any) -> dict[str, Any]:
    changed = body()
    *folders, last = path.split(".")
    place = changed
    for folder in folders:
        place = place[folder]
    place[last] = value
    return changed


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("candidate.source", 5),
        ("candidate.source", "x" * (MAX_SOURCE + 1)),
        ("task.workloads", []),
        ("task.name", ""),
        ("priority", 11),
        ("priority", "urgent"),
        ("options.seeds", 0),
        ("options.sampling.target", -1),
        ("unknown", 1),
        ("schema_version", 2),
    ],
)
def test_a_wrong_value_is_named_with_its_path(refusing: Served, path: str, value: Any) -> None:
    told = _problem(refusing.http.post("/v1/jobs", json=_changed(path, value)), 422)
    assert told["error"].startswith(f"{path}: ")
    batch = {"requests": [body(), _changed(path, value)]}
    told = _problem(refusing.http.post("/v1/jobs/batch", json=batch), 422)
    assert told["error"].startswith(f"requests.1.{path}: ")


@pytest.mark.parametrize("content", ["[]", "null", "7", '"text"'])
def test_a_body_that_is_no_object_is_named_so(refusing: Served, content: str) -> None:
    assert _problem(_post(refusing.http, content), 422)["error"].startswith("body: ")


@pytest.mark.parametrize("requests", [[], [body()] * 257], ids=["none", "too many"])
def test_a_batch_has_bounds(refusing: Served, requests: list[dict[str, Any]]) -> None:
    told = _problem(refusing.http.post("/v1/jobs/batch", json={"requests": requests}), 422)
    assert told["error"].startswith("requests: ")


def test_a_body_must_say_that_it_is_json(refusing: Served) -> None:
    """Browsers let any page send other types to this machine."""
    _problem(refusing.http.post("/v1/jobs", content=json.dumps(body())), 415)
    headers = {"Content-Type": "text/plain"}
    _problem(refusing.http.post("/v1/jobs", content=json.dumps(body()), headers=headers), 415)


def test_what_is_not_there_and_what_is_not_allowed_are_problems_too(refusing: Served) -> None:
    _problem(refusing.http.get("/v2/jobs"), 404)
    _problem(refusing.http.get("/docs"), 404)
    _problem(refusing.http.get("/redoc"), 404)
    _problem(refusing.http.put("/v1/jobs", json=body()), 405)


def test_a_defect_is_told_without_its_traceback(
    refusing: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(client: str, job: str) -> Job:
        raise RuntimeError("secret detail")

    monkeypatch.setattr(refusing.book, "get", broken)
    response = refusing.http.get("/v1/jobs/any")
    assert _problem(response, 500)["error"] == "internal error"
    assert "secret" not in response.text
    assert 'status="500"' in refusing.http.get("/metrics").text


def test_trouble_with_the_book_is_temporary_and_keeps_its_path(
    refusing: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(client: str, requests: object) -> list[Job]:
        raise BadInput("/where/it/lies: the disk is full", hint="make room")

    monkeypatch.setattr(refusing.book, "submit_many", full)
    response = refusing.http.post("/v1/jobs", json=body())
    _problem(response, 503)
    assert "/where" not in response.text
    assert int(response.headers["Retry-After"]) > 0


def test_capacity_and_health_tell_how_the_service_is(served: Served) -> None:
    told = served.http.get("/v1/capacity").json()
    assert told == {
        "lanes": 1,
        "waiting": 0,
        "running": 0,
        "accepting": True,
        "max_batch": 256,
        "max_body": 8 << 20,
    }
    assert served.http.get("/healthz").json()["alive"] is True
    assert served.http.get("/readyz").json() == {"ready": True}


def test_the_description_covers_every_route_and_its_references_exist(refusing: Served) -> None:
    described = refusing.http.get("/openapi.json").json()
    assert set(described["paths"]) == {
        "/v1/jobs",
        "/v1/jobs/batch",
        "/v1/jobs/{job}",
        "/v1/jobs/read",
        "/v1/rewards",
        "/v1/events",
        "/v1/capacity",
        "/healthz",
        "/readyz",
        "/metrics",
    }
    schemas = described["components"]["schemas"]
    references = [
        part.split('"')[0] for part in json.dumps(described).split("#/components/schemas/")[1:]
    ]
    assert "JobRequest" in references
    assert set(references) <= set(schemas)


def test_metrics_count_jobs_requests_and_seconds(served: Served) -> None:
    job = served.http.post("/v1/jobs", json=body()).json()["id"]
    served.http.get(f"/v1/jobs/{job}", params={"wait": 20})
    served.http.get("/somewhere/else")
    served.http.request("BREW", "/v1/jobs")
    # It is counted just after it is told.
    until(lambda: 'finished_total{outcome="done"} 1.0' in served.http.get("/metrics").text)
    text = served.http.get("/metrics").text
    assert 'kernel_smith_jobs{state="done"} 1.0' in text
    assert 'kernel_smith_jobs{state="waiting"} 0.0' in text
    assert "kernel_smith_evaluation_seconds_count 1.0" in text
    assert "kernel_smith_oldest_waiting_seconds 0.0" in text
    assert 'requests_total{method="GET",route="/v1/jobs/{job}",status="200"} 1.0' in text
    assert 'requests_total{method="GET",route="none",status="404"} 1.0' in text
    assert job not in text
    assert "BREW" not in text


def test_a_draining_service_takes_no_jobs_but_answers_for_those_it_has(tmp_path: Path) -> None:
    engine = HeldEngine()
    with serving(tmp_path, engine, drain_seconds=60) as served:
        job = served.http.post("/v1/jobs", json=body()).json()["id"]
        assert engine.begun.wait(120)
        served.service.stop()
        until(lambda: served.http.get("/readyz").status_code == 503)
        refused = served.http.post("/v1/jobs", json=body(1))
        _problem(refused, 503)
        assert int(refused.headers["Retry-After"]) > 0
        assert served.http.get("/healthz").status_code == 200
        assert served.http.get("/v1/capacity").json()["accepting"] is False
        threading.Timer(0.1, engine.release).start()
        told = served.http.get(f"/v1/jobs/{job}", params={"wait": 20}).json()
        assert told["state"] == "done"


def test_what_does_not_finish_in_time_is_given_back(tmp_path: Path) -> None:
    with serving(tmp_path, HeldEngine(), drain_seconds=0.05) as served:
        job = served.http.post("/v1/jobs", json=body()).json()["id"]
        with served.http.stream("GET", "/v1/events", params={"after": 0}) as stream:
            lines = stream.iter_lines()
            while _events(lines, 1)[0][1]["state"] != "running":
                pass
            served.service.stop()
            assert all(not line.startswith("data: ") or job in line for line in lines)
    with serving(tmp_path) as served:
        told = served.http.get(f"/v1/jobs/{job}", params={"wait": 20}).json()
        assert told["state"] == "done"


def test_a_second_request_to_stop_is_a_hurry(tmp_path: Path) -> None:
    engine = HeldEngine()
    with serving(tmp_path, engine, drain_seconds=3600) as served:
        served.http.post("/v1/jobs", json=body())
        assert engine.begun.wait(120)
        served.service.stop()  # the end of this block stops it again
    with serving(tmp_path, capacity=0) as served:
        [job] = served.http.get("/v1/jobs").json()["jobs"]
        assert job["state"] == "waiting"
