"""Whatever is sent, the service answers in time and as its own description says.

Requests are generated from that description, good ones and bad ones; a route that is added to it is
covered from then on.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any, cast

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)
from serving import Served, serving, until

from kernel_smith.evaluation.engines.simulated import SimulatedEngine
from kernel_smith.evaluation.service.app import make_app
from kernel_smith.evaluation.service.auth import TokenFile, add_token
from kernel_smith.records import JobState

EXAMPLES = 6
ANSWER_SECONDS = 20.0
DEVICES = 8
MAX_BODY = 1 << 16
# What it describes does not depend on what it is made of.
DESCRIPTION = make_app(cast(Any, None), cast(Any, SimpleNamespace()), tokens=None).openapi()
SCHEMA = schemathesis.openapi.from_dict(DESCRIPTION)
OPERATIONS = {
    (method, path): operation
    for path, methods in DESCRIPTION["paths"].items()
    for method, operation in methods.items()
}
ENDLESS = "/v1/events"
GUARDED = [route for route, operation in OPERATIONS.items() if "security" in operation]
WITH_BODY = [route for route, operation in OPERATIONS.items() if "requestBody" in operation]
# Nothing can be wrong with a request that has neither values nor a token.
CAN_BE_WRONG = [
    route
    for route, operation in OPERATIONS.items()
    if {"parameters", "requestBody", "security"} & set(operation)
]
# The description of these does not speak of problems.
PARTLY_DESCRIBED = {"/healthz", "/readyz"}
AS_DESCRIBED = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_schema_conformance,
]
ANYTHING = settings(
    max_examples=EXAMPLES,
    derandomize=True,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


class Fuzzed:
    def __init__(self, served: Served, token: str) -> None:
        self.served = served
        self.headers = {"Authorization": f"Bearer {token}"}

    def answer(self, case: schemathesis.Case) -> None:
        """Have a case answered, and its answer checked."""
        if case.path == ENDLESS:
            self._begin_stream(case)
            return
        response = case.call(self.served.url, headers=self.headers, timeout=ANSWER_SECONDS)
        partly = case.path in PARTLY_DESCRIBED
        case.validate_response(response, checks=[not_a_server_error] if partly else AS_DESCRIBED)

    def _begin_stream(self, case: schemathesis.Case) -> None:
        wanted = case.as_transport_kwargs(self.served.url, headers=self.headers)
        names = ("method", "url", "params", "headers", "cookies")
        call = {name: wanted[name] for name in names if wanted.get(name)}
        with self.served.http.stream(**call) as response:
            assert response.status_code in (200, 401, 405, 422)
            assert next(response.iter_lines())


@pytest.fixture(scope="module")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Fuzzed]:
    folder = tmp_path_factory.mktemp("fuzzed")
    token = add_token(folder / "tokens", "ann")
    tokens = TokenFile(folder / "tokens")
    with (
        SimulatedEngine(DEVICES, seconds=0.01) as engine,
        serving(folder, engine, capacity=DEVICES, tokens=tokens, max_body=MAX_BODY) as served,
    ):
        yield Fuzzed(served, token)
        until(lambda: served.book.counts()[JobState.WAITING] == 0)
        # What is accepted can be evaluated.
        assert served.book.counts()[JobState.FAILED] == 0


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
def test_good_requests_are_answered_as_described(fuzzed: Fuzzed, method: str, path: str) -> None:
    strategy = SCHEMA[path][method].as_strategy(generation_mode=GenerationMode.POSITIVE)
    ANYTHING(given(strategy)(fuzzed.answer))()


@pytest.mark.parametrize(("method", "path"), CAN_BE_WRONG)
def test_bad_requests_are_answered_as_described(fuzzed: Fuzzed, method: str, path: str) -> None:
    strategy = SCHEMA[path][method].as_strategy(generation_mode=GenerationMode.NEGATIVE)
    ANYTHING(given(strategy)(fuzzed.answer))()


@pytest.mark.parametrize("token", [None, "wrong"])
@pytest.mark.parametrize(("method", "path"), GUARDED)
def test_good_requests_without_a_valid_token_are_refused(
    fuzzed: Fuzzed, method: str, path: str, token: str | None
) -> None:
    strategy = SCHEMA[path][method].as_strategy(generation_mode=GenerationMode.POSITIVE)

    @settings(ANYTHING, max_examples=2)
    @given(strategy)
    def ask(case: schemathesis.Case) -> None:
        case.headers.pop("Authorization", None)
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        response = case.call(fuzzed.served.url, headers=headers, timeout=ANSWER_SECONDS)
        assert response.status_code == 401

    ask()


def test_all_routes_but_health_need_a_token() -> None:
    assert {path for _, path in set(OPERATIONS) - set(GUARDED)} == {"/healthz", "/readyz"}


BROKEN = st.one_of(
    st.binary(max_size=200),
    st.text(max_size=200).map(str.encode),
    st.integers(MAX_BODY + 1, 4 * MAX_BODY).map(lambda size: b'{"task": "' + b"x" * size),
    st.integers(1, MAX_BODY // 2).map(lambda depth: b"[" * depth),
    st.recursive(
        st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
        lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
        max_leaves=20,
    ).map(lambda value: json.dumps(value).encode()),
)


@pytest.mark.parametrize(("method", "path"), WITH_BODY)
def test_bodies_that_no_schema_knows_are_refused(fuzzed: Fuzzed, method: str, path: str) -> None:
    headers = {**fuzzed.headers, "Content-Type": "application/json"}

    @settings(ANYTHING, max_examples=20)
    @given(BROKEN)
    def send(content: bytes) -> None:
        response = fuzzed.served.http.request(method, path, content=content, headers=headers)
        assert response.status_code in (400, 413, 422)
        assert (response.status_code == 413) == (len(content) > MAX_BODY)
        assert set(response.json()) == {"error", "hint"}

    send()
