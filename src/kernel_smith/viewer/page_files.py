"""The application's own files, and the one HTML page around them."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files

_STYLE = "style.css"
_FRAME = "index.html"
# It need not wait for the end of the file: what comes later is asked for later.
MAIN = '<script type="module" async>import "ks/main.js";</script>\n'


@cache
def page_files() -> dict[str, str]:
    """Return the name and the text of every file of the application."""
    folder = files("kernel_smith.viewer") / "page"
    return {each.name: each.read_text(encoding="utf-8") for each in folder.iterdir()}


def modules() -> list[str]:
    return sorted(name for name in page_files() if name.endswith(".js"))


def embedded_frame() -> tuple[str, str]:
    """Return what comes before the data in a page that needs no other file, and what after.
    `MAIN` belongs between the data that is needed at once and the rest.

    Modules are found by an import map of data addresses, so they are the same files as a server
    sends, and nothing is built.
    """
    addresses = {name: _data_address(page_files()[name]) for name in modules()}
    policy = (
        "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        f"<style>\n{page_files()[_STYLE]}</style>\n"
        f'<script type="importmap">{_import_map(addresses)}</script>'
    )
    before, after = page_files()[_FRAME].replace("<!--HEAD-->", head).split("<!--DATA-->")
    return before, after


def served_frame() -> tuple[str, str]:
    """Return the page that asks its server for everything, and the policy that it is sent with."""
    import_map = _import_map({name: f"./page/{name}" for name in modules()})
    head = (
        f'<link rel="stylesheet" href="page/{_STYLE}">\n'
        f'<script type="importmap">{import_map}</script>'
    )
    digest = base64.b64encode(hashlib.sha256(import_map.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'self' 'sha256-{digest}'; style-src 'self'; "
        "img-src data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )
    main = '<script type="module" src="page/main.js"></script>'
    page = page_files()[_FRAME].replace("<!--HEAD-->", head).replace("<!--DATA-->", main)
    return page, policy


def _import_map(addresses: dict[str, str]) -> str:
    return json.dumps({"imports": {f"ks/{name}": each for name, each in addresses.items()}})


def _data_address(text: str) -> str:
    return f"data:text/javascript;base64,{base64.b64encode(text.encode()).decode()}"
