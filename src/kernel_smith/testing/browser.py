"""A headless Chromium, driven over its own pipe (the DevTools protocol): no other package needed.

    with Browser.start() as browser:
        page = browser.open("file:///report.html")
        page.evaluate("document.title")

A page notes what it must not do: errors on its console, and requests to anywhere else.
"""

from __future__ import annotations

import base64
import contextlib
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_NAMES = ("chromium", "chromium-browser", "google-chrome-stable", "google-chrome")
_PATIENCE = 60.0  # seconds, on a machine that does other work, too
_PIPE_BYTES = 4096  # can always be written at once where select says so
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",  # which root may not have
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--no-first-run",
    "--hide-scrollbars",
    "--lang=en-US",
    "--remote-debugging-pipe",
)
KEYS = {"Tab": 9, "Enter": 13, "Escape": 27, "ArrowDown": 40, "ArrowUp": 38, "End": 35}


def find_browser() -> str | None:
    """Return the path of a Chromium, if one is installed."""
    return next(filter(None, map(shutil.which, _NAMES)), None)


class BrowserError(Exception):
    """The browser did not do what it was asked to."""


class Browser:
    """One process; `open` makes a tab in it."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._rest = b""
        self._number = 0
        self._pages: dict[str, Page] = {}

    @classmethod
    @contextlib.contextmanager
    def start(cls) -> Iterator[Browser]:
        program = find_browser()
        if program is None:
            raise BrowserError("no Chromium is installed")
        with contextlib.ExitStack() as stack:
            folder = stack.enter_context(
                tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True)
            )
            their_in, our_out = os.pipe()
            our_in, their_out = os.pipe()
            process = _spawn(
                [program, *_ARGUMENTS, f"--user-data-dir={folder}"], their_in, their_out
            )
            stack.callback(_end, process)
            for descriptor in (our_in, our_out):
                stack.callback(os.close, descriptor)
            yield cls(our_out, our_in)

    def open(self, url: str, width: int = 1280, height: int = 900, *, dark: bool = False) -> Page:
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        page = self._pages[attached["sessionId"]] = Page(self, attached["sessionId"], target)
        page.begin(url, width, height, dark=dark)
        return page

    def call(self, method: str, parameters: dict[str, Any], session: str | None = None) -> Any:
        """Ask, and take in what happens meanwhile, until the answer comes."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if session is not None:
            message["sessionId"] = session
        deadline = time.monotonic() + _PATIENCE
        self._write(json.dumps(message).encode() + b"\0", deadline)
        while True:
            answer = self._read(deadline)
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise BrowserError(f"{method}: {answer['error']['message']}")
                return answer["result"]
            page = self._pages.get(answer.get("sessionId", ""))
            if page is not None:
                page.notice(answer["method"], answer["params"])

    def _write(self, data: bytes, deadline: float) -> None:
        """Both sides may have more to say than a pipe holds, so this one listens meanwhile."""
        while data:
            if self._wait([self._to], deadline):
                data = data[os.write(self._to, data[:_PIPE_BYTES]) :]

    def _read(self, deadline: float) -> dict[str, Any]:
        while b"\0" not in self._rest:
            self._wait([], deadline)
        message, _, self._rest = self._rest.partition(b"\0")
        found: dict[str, Any] = json.loads(message)
        return found

    def _wait(self, writable: list[int], deadline: float) -> bool:
        """Take in what has come; return whether more can be written."""
        patience = max(0.0, deadline - time.monotonic())
        readable, ready, _ = select.select([self._from], writable, [], patience)
        if not readable and not ready:
            raise BrowserError("the browser does not answer")
        if readable:
            part = os.read(self._from, 1 << 20)
            if not part:
                raise BrowserError("the browser has ended")
            self._rest += part
        return bool(ready)


class Page:
    """One tab."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self._browser, self._session, self._target = browser, session, target
        self.problems: list[str] = []
        """What its scripts complained about."""
        self.requests: list[str] = []
        """The addresses that it asked for."""

    def begin(self, url: str, width: int, height: int, *, dark: bool) -> None:
        for domain in ("Page", "Runtime", "Network", "Log"):
            self._call(f"{domain}.enable")
        self.resize(width, height)
        self.prefer(dark=dark)
        self._call("Emulation.setLocaleOverride", locale="en-US")
        self.go(url)

    def prefer(self, *, dark: bool) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self._call("Emulation.setEmulatedMedia", features=[scheme])

    def to_front(self) -> None:
        """Make it the tab in sight: others draw nothing."""
        self._call("Page.bringToFront")

    def go(self, url: str) -> None:
        self._call("Page.navigate", url=url)

    def resize(self, width: int, height: int) -> None:
        self._call(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression; promises are waited for."""
        answer = self._call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(details.get("exception", {}).get("description", details["text"]))
        return answer["result"].get("value")

    def wait_for(self, expression: str) -> Any:
        """Return the first value of an expression that counts as true."""
        deadline = time.monotonic() + _PATIENCE
        while True:
            value = None
            with contextlib.suppress(BrowserError):  # while the page is changing
                value = self.evaluate(expression)
            if value:
                return value
            if time.monotonic() > deadline:
                raise BrowserError(f"never came true: {expression}; {self.problems}")
            time.sleep(0.02)

    def press(self, key: str) -> None:
        code = KEYS.get(key, ord(key[0].upper()))
        shared = {"key": key, "windowsVirtualKeyCode": code, "code": key}
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        self._call("Input.dispatchKeyEvent", type="keyDown", **shared, **text)
        self._call("Input.dispatchKeyEvent", type="keyUp", **shared)

    def picture(self, path: Path, *, whole: bool = False) -> None:
        shot = self._call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(shot["data"]))

    def close(self) -> None:
        self._browser.call("Target.closeTarget", {"targetId": self._target})

    def notice(self, method: str, parameters: dict[str, Any]) -> None:
        if method == "Network.requestWillBeSent":
            self.requests.append(parameters["request"]["url"])
        elif method == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif method == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(parameters["entry"]["text"])
        elif method == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning"):
            self.problems.append(str([each.get("value") for each in parameters["args"]]))

    def _call(self, method: str, **parameters: Any) -> Any:
        return self._browser.call(method, parameters, self._session)


def _spawn(command: list[str], reads: int, writes: int) -> subprocess.Popen[bytes]:
    """Start a program that reads messages from descriptor 3, and writes them to descriptor 4."""
    try:
        shell = ["bash", "-c", f'exec "$@" 3<&{reads} 4>&{writes}', "bash", *command]
        return subprocess.Popen(
            shell,
            pass_fds=(reads, writes),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
    finally:
        os.close(reads)
        os.close(writes)


def _end(process: subprocess.Popen[bytes]) -> None:
    process.terminate()
    try:
        process.wait(10)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
