"""Who may ask: every request belongs to a client, or is refused."""

from __future__ import annotations

import logging
from http import HTTPStatus
from typing import Annotated
from urllib.parse import urlsplit

from fastapi import Depends, Request
from fastapi.concurrency import run_in_threadpool
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer

from kernel_smith.errors import BadInput
from kernel_smith.evaluation.service.auth import Client, TokenFile
from kernel_smith.evaluation.service.parts import Shared
from kernel_smith.evaluation.service.problems import Problem, not_now
from kernel_smith.loopback import is_loopback

_log = logging.getLogger(__name__)

_LOCAL = Client("local")
_bearer = HTTPBearer(auto_error=False, description="from `kernel-smith serve tokens add`")


async def client_of(
    request: Request,
    parts: Shared,
    credentials: Annotated[HTTPAuthorizationCredentials | None, Depends(_bearer)],
) -> Client:
    """Without tokens all who ask are one client."""
    if parts.tokens is None:
        refuse_other_hosts(request)
        return _LOCAL
    secret = credentials.credentials if credentials else ""
    client = await run_in_threadpool(_find, parts.tokens, secret)
    if client is None:
        raise Problem(
            HTTPStatus.UNAUTHORIZED,
            "a valid token is needed",
            hint="send Authorization: Bearer TOKEN",
            headers={"WWW-Authenticate": "Bearer"},
        )
    return client


Asking = Annotated[Client, Depends(client_of)]


def _find(tokens: TokenFile, secret: str) -> Client | None:
    try:
        return tokens.find(secret)
    except BadInput as error:
        # A list of clients that cannot be read lets nobody in.
        _log.error("%s (%s)", error.what, error.hint)
        raise not_now("the list of clients cannot be read") from None


def refuse_other_hosts(request: Request) -> None:
    """A web page can let a name of its own point to this machine, and ask as if it were local.

    The name that it asked for is in the request.
    """
    try:
        host = urlsplit(f"//{request.headers.get('host', '')}").hostname
    except ValueError:
        host = None
    if host is None or not is_loopback(host):
        what, hint = "without tokens only this machine is served", "ask for localhost"
        raise Problem(HTTPStatus.FORBIDDEN, what, hint=hint)
