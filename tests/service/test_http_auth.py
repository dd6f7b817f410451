"""Who may ask the service, and what others get to see."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from serving import Served, body, serving

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.service.auth import (
    Client,
    TokenFile,
    add_token,
    list_tokens,
    remove_token,
)
from kernel_smith.evaluation.service.server import refuse_strangers

ROUTES = [
    ("POST", "/v1/jobs"),
    ("POST", "/v1/jobs/batch"),
    ("GET", "/v1/jobs/some-job"),
    ("GET", "/v1/jobs"),
    ("DELETE", "/v1/jobs/some-job"),
    ("GET", "/v1/events"),
    ("GET", "/v1/capacity"),
    ("GET", "/metrics"),
]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


class Guarded:
    """A service with two clients, `ann` and `bob`."""

    def __init__(self, served: Served, file: Path, ann: str, bob: str) -> None:
        self.served = served
        self.file = file
        self.ann = {"Authorization": f"Bearer {ann}"}
        self.bob = {"Authorization": f"Bearer {bob}"}


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Guarded]:
    folder = tmp_path_factory.mktemp("guarded")
    file = folder / "tokens"
    ann, bob = add_token(file, "ann"), add_token(file, "bob", priority_cap=2)
    with serving(folder, capacity=0, tokens=TokenFile(file)) as served:
        yield Guarded(served, file, ann, bob)


@pytest.mark.parametrize(
    "header",
    [None, "Bearer", "Bearer wrong", "Bearer " + "é" * 5, "Basic YW5uOng=", "Bearer ann"],
    ids=["none", "empty", "wrong", "not ASCII", "another scheme", "a name"],
)
@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_without_a_valid_token_every_route_refuses(
    guarded: Guarded, method: str, path: str, header: str | None
) -> None:
    headers = [] if header is None else [(b"Authorization", header.encode("latin-1"))]
    # A body that would be refused for what it is, were it looked at.
    content = b"not JSON" if method == "POST" else None
    response = guarded.served.http.request(method, path, headers=headers, content=content)
    assert response.status_code == 401
    assert response.headers["WWW-Authenticate"] == "Bearer"
    assert set(response.json()) == {"error", "hint"}


def test_the_hash_in_the_file_is_no_token(guarded: Guarded) -> None:
    digest = guarded.file.read_text().splitlines()[0].split(":")[1]
    headers = {"Authorization": f"Bearer {digest}"}
    assert guarded.served.http.get("/v1/capacity", headers=headers).status_code == 401


def test_health_and_the_description_need_no_token(guarded: Guarded) -> None:
    for path in ("/healthz", "/readyz", "/openapi.json"):
        assert guarded.served.http.get(path).status_code == 200


def test_a_job_of_somebody_else_is_answered_like_one_that_does_not_exist(guarded: Guarded) -> None:
    http = guarded.served.http
    job = http.post("/v1/jobs", json=body(), headers=guarded.ann).json()["id"]
    for method, path in [
        ("GET", f"/v1/jobs/{job}"),
        ("GET", f"/v1/jobs/{job}?wait=1"),
        ("DELETE", f"/v1/jobs/{job}"),
        ("GET", f"/v1/jobs?after={job}"),
    ]:
        theirs = http.request(method, path, headers=guarded.bob)
        nobodys = http.request(method, path.replace(job, "x" * len(job)), headers=guarded.bob)
        assert theirs.status_code == nobodys.status_code == 404
        assert theirs.text == nobodys.text
    assert http.get(f"/v1/jobs/{job}", headers=guarded.ann).json()["state"] == "waiting"


def test_lists_and_events_hold_only_the_clients_own_jobs(guarded: Guarded) -> None:
    http = guarded.served.http
    ann = http.post("/v1/jobs", json=body(7), headers=guarded.ann).json()["id"]
    with http.stream("GET", "/v1/events?after=0", headers=guarded.bob) as stream:
        bob = http.post("/v1/jobs", json=body(7), headers=guarded.bob).json()["id"]
        assert ann != bob
        told: list[str] = []
        for line in stream.iter_lines():
            told.append(line)
            if bob in line:
                break
    assert not any(ann in line for line in told)
    listed = http.get("/v1/jobs", headers=guarded.bob).json()["jobs"]
    assert bob in {job["id"] for job in listed}
    assert ann not in {job["id"] for job in listed}


def test_a_priority_is_capped(guarded: Guarded) -> None:
    http = guarded.served.http
    for headers, given in ((guarded.ann, 9), (guarded.bob, 2)):
        job = http.post("/v1/jobs", json=body(9, priority=9), headers=headers).json()
        assert job["priority"] == given
    batch = {"requests": [body(10, priority=9), body(11, priority=-4)]}
    told = http.post("/v1/jobs/batch", json=batch, headers=guarded.bob).json()["jobs"]
    assert [job["priority"] for job in told] == [2, -4]


def test_a_token_works_from_when_it_is_added_until_it_is_removed(guarded: Guarded) -> None:
    headers = {"Authorization": f"Bearer {add_token(guarded.file, 'eve')}"}
    assert guarded.served.http.get("/v1/capacity", headers=headers).status_code == 200
    remove_token(guarded.file, "eve")
    assert guarded.served.http.get("/v1/capacity", headers=headers).status_code == 401


def test_a_list_of_clients_that_cannot_be_read_lets_nobody_in(guarded: Guarded) -> None:
    kept = guarded.file.read_text()
    try:
        guarded.file.write_text(kept + "what is this\n")
        response = guarded.served.http.get("/v1/capacity", headers=guarded.ann)
        assert response.status_code == 503
        assert str(guarded.file) not in response.text
    finally:
        guarded.file.write_text(kept)
    assert guarded.served.http.get("/v1/capacity", headers=guarded.ann).status_code == 200


def test_without_tokens_a_name_that_points_here_is_not_enough(tmp_path: Path) -> None:
    with serving(tmp_path, capacity=0) as served:
        port = httpx.URL(served.url).port
        for host in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "[", ""):
            response = served.http.get("/v1/capacity", headers={"Host": host})
            assert response.status_code in (400, 403), host
        for host in (f"localhost:{port}", "127.0.0.1", f"[::1]:{port}"):
            assert served.http.get("/v1/capacity", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "example.org", ""])
def test_strangers_need_tokens(host: str, file: Path) -> None:
    with pytest.raises(BadInput) as refused:
        refuse_strangers(host, None)
    assert "--clients" in refused.value.hint
    add_token(file, "ann")
    refuse_strangers(host, TokenFile(file))


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_this_machine_needs_none(host: str) -> None:
    refuse_strangers(host, None)


def test_a_secret_is_long_and_only_its_hash_is_kept(file: Path) -> None:
    secret = add_token(file, "ann", priority_cap=-3)
    assert len(secret) >= 43
    assert secret != add_token(file, "bob")
    assert secret not in file.read_text()
    digest = hashlib.sha256(secret.encode()).hexdigest()
    assert file.read_text().splitlines()[0] == f"ann:{digest}:-3"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert list_tokens(file) == [Client("ann", -3), Client("bob", 10)]
    assert TokenFile(file).find(secret) == Client("ann", -3)


def test_a_file_with_an_open_mode_is_closed_when_it_is_changed(file: Path) -> None:
    add_token(file, "ann")
    os.chmod(file, 0o644)
    add_token(file, "bob")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_comments_and_empty_lines_are_skipped(file: Path) -> None:
    file.write_text(f"# clients\n\n  ann:{'0' * 64}\n")
    assert list_tokens(file) == [Client("ann")]


@pytest.mark.parametrize(
    "line",
    ["ann", "ann:abc", f"ann:{'0' * 64}:11", f"ann:{'0' * 64}:high", f"a b:{'0' * 64}", ":"],
)
def test_a_wrong_line_is_named_with_its_number(file: Path, line: str) -> None:
    file.write_text(f"# clients\n{line}\n")
    with pytest.raises(BadInput, match=r"tokens:2: expected name:sha256-hex"):
        TokenFile(file)


def test_names_must_differ(file: Path) -> None:
    add_token(file, "ann")
    with pytest.raises(BadInput, match="already"):
        add_token(file, "ann")
    file.write_text(file.read_text() * 2)
    with pytest.raises(BadInput, match="must differ"):
        TokenFile(file)


@pytest.mark.parametrize("name", ["", "a:b", "a b", "-a", "x" * 65, "a\n"])
def test_a_name_that_no_line_can_hold_is_refused(file: Path, name: str) -> None:
    with pytest.raises(BadInput, match="cannot be called"):
        add_token(file, name)
    assert not file.exists()


def test_what_is_not_there_cannot_be_removed_or_read(file: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="cannot be read"):
        TokenFile(file)
    add_token(file, "ann")
    with pytest.raises(BadInput, match="no client bob") as refused:
        remove_token(file, "bob")
    assert "ann" in refused.value.hint
    remove_token(file, "ann")
    assert list_tokens(file) == []
    with pytest.raises(BadInput, match="cannot be written"):
        add_token(tmp_path / "missing" / "tokens", "ann")


def test_what_is_no_file_is_not_replaced_by_one(tmp_path: Path) -> None:
    """As root that would be /dev/null, for everybody."""
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(BadInput, match="a pipe or a device, expected a file"):
        add_token(pipe, "ann")
    assert pipe.is_fifo()
    assert [*tmp_path.iterdir()] == [pipe]
