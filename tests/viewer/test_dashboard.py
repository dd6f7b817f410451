"""`kernel-smith dashboard` over real connections: it shows what happens, and changes nothing."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from viewer_samples import RUN, events, fill

from kernel_smith.cli.task_words import words_of
from kernel_smith.store import Store
from kernel_smith.viewer import app
from kernel_smith.viewer.bench_page import ResultBook
from kernel_smith.viewer.book import RunBook
from kernel_smith.viewer.page_files import page_files
from kernel_smith.viewer.server import Dashboard


@contextlib.contextmanager
def serving(
    path: Path, host: str = "127.0.0.1", results: tuple[Path, ...] = (), port: int = 0
) -> Iterator[str]:
    with Store.open(path) as store:
        live = Dashboard(RunBook(store, words_of), ResultBook(list(results)), host=host, port=port)
        thread = threading.Thread(target=live.run)
        thread.start()
        try:
            yield live.url
        finally:
            live.stop()
            thread.join()


@pytest.fixture(scope="module")
def url(store_path: Path, result_path: Path) -> Iterator[str]:
    with serving(store_path, results=(result_path,)) as url:
        yield url


def test_it_serves_its_files_and_the_data(url: str, result_path: Path) -> None:
    with httpx.Client(base_url=url) as client:
        page = client.get("/")
        assert "default-src 'none'" in page.headers["content-security-policy"]
        for name in page_files():
            if name != "index.html":
                assert client.get(f"/page/{name}").status_code == 200
        contents = client.get("/data/contents").json()
        assert contents["live"] and len(contents["runs"]) == 2
        assert client.get("/data/run", params={"id": RUN}).json()["task"] == "scale"
        steps = client.get("/data/steps", params={"id": RUN, "portion": 1}).json()["steps"]
        assert list(steps) == [str(at) for at in range(32, 40)]
        about = {"id": str(result_path)}
        assert client.get("/data/result", params=about).json()["boards"]
        assert client.get("/data/winners", params=about | {"portion": 0}).json()["winners"]


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/data/run?id=nobody", 404),
        ("/data/result?id=nothing", 404),
        ("/data/run", 422),
        ("/data/steps?id=x&portion=-1", 422),
        ("/page/index.html", 404),
        ("/page/..%2frecords.py", 404),
        ("/elsewhere", 404),
    ],
)
def test_what_is_not_there_is_told_as_json(url: str, path: str, status: int) -> None:
    answer = httpx.get(f"{url.rstrip('/')}{path}")
    assert answer.status_code == status
    assert answer.json()["error"]


def test_nothing_can_be_changed(url: str) -> None:
    for method in ("POST", "PUT", "DELETE", "PATCH"):
        assert httpx.request(method, f"{url}data/run?id={RUN}").status_code == 405


def test_a_name_of_another_machine_is_refused(url: str) -> None:
    """As when a web page lets a name of its own point here."""
    assert httpx.get(url, headers={"Host": "example.com"}).status_code == 403


def test_beyond_this_machine_a_token_is_needed(store_path: Path) -> None:
    with serving(store_path, host="0.0.0.0") as url:
        port = urlsplit(url).port
        here = f"http://127.0.0.1:{port}"
        token = urlsplit(url).query.removeprefix("token=")
        assert len(token) > 30
        for path in ("/", "/page/main.js", "/data/contents", "/?token=wrong", "/data/changes"):
            assert httpx.get(f"{here}{path}").status_code == 401
        with httpx.Client(base_url=here, follow_redirects=True) as client:
            opened = client.get(f"/?token={token}")
            assert opened.status_code == 200 and "token" not in str(opened.url)
            assert client.get("/data/contents").status_code == 200  # by the cookie
        header = {"Authorization": f"Bearer {token}"}
        assert httpx.get(f"{here}/data/contents", headers=header).status_code == 200


def test_changes_are_told_as_they_happen(tmp_path: Path) -> None:
    path = tmp_path / "runs.sqlite"
    fill(path, "first")
    with serving(path) as url, Store.open(path) as store:
        httpx.get(f"{url}data/contents")  # which has costs read: a change, too
        with httpx.stream("GET", f"{url}data/changes", timeout=30) as stream:
            lines = stream.iter_lines()
            assert next(lines) == ": changes follow"
            for number, event in enumerate(events(RUN)):
                store.append(RUN, event)
                if number == 6:
                    break
            assert any(line.startswith("data: ") and RUN in line for line in lines)
        page = httpx.get(f"{url}data/run", params={"id": RUN}).json()
        assert page["state"] == "interrupted" and page["funnel"]["proposed"] == 3


def test_one_page_too_many_is_told_so(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(app, "_MOST_STREAMS", 1)
    with httpx.stream("GET", f"{url}data/changes", timeout=30) as stream:
        lines = stream.iter_lines()  # the connection ends with it
        assert next(lines) == ": changes follow"
        refused = httpx.get(f"{url}data/changes", timeout=30)
    assert refused.status_code == 503
    assert "1 pages watch already" in refused.json()["error"]
