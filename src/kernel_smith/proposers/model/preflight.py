"""Does every model answer? One cheap question to each, before a run spends anything."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from kernel_smith.errors import BadInput
from kernel_smith.proposers.model.background import Background
from kernel_smith.proposers.model.client import Bill, Client
from kernel_smith.proposers.model.config import Model, Settings
from kernel_smith.proposers.model.exchange import open_http
from kernel_smith.proposers.model.failures import ModelError, ModelUnknown, RateLimited, Stalled
from kernel_smith.proposers.model.ledger import Ledger
from kernel_smith.records import Message

if TYPE_CHECKING:
    import aiohttp

QUESTION = Message(role="user", content="Answer with one word: yes.")
# Room for a model that thinks before it says a word; one that does not stops by itself.
_MOST_TOKENS = 1024
_PATIENCE_SECONDS = 120.0  # some servers load a model when it is asked for the first time
_RETRIES = 2
_NAMES_SHOWN = 8


def check_models(settings: Settings) -> None:
    """Ask each model one question. Raises `BadInput` with what keeps the first from answering."""
    background = Background()
    try:
        for error in background.run(_ask_all(settings, background)):
            if error is not None:
                raise BadInput(error.what, hint=error.hint)
    finally:
        background.close()


def demand_prices(settings: Settings) -> None:
    """Raise `BadInput` if a cap on dollars could not be kept."""
    unknown = [model.name for model in settings.models if not model.priced]
    if unknown:
        raise BadInput(
            f"dollars are capped, and the price of {', '.join(unknown)} is not known",
            hint="set price_prompt and price_completion (dollars per million tokens; 0 if free)",
        )


async def _ask_all(settings: Settings, background: Background) -> list[ModelError | None]:
    return await asyncio.gather(*(_trouble(model, background) for model in settings.models))


async def _trouble(model: Model, background: Background) -> ModelError | None:
    """Return what keeps a model from answering; a rate limit does so for a while only."""
    short = {
        "max_tokens": min(model.max_tokens, _MOST_TOKENS),
        "deadline_seconds": min(model.deadline_seconds, _PATIENCE_SECONDS),
        "retries": min(model.retries, _RETRIES),
    }
    client = Client(model.model_copy(update=short), background, Ledger())
    try:
        await client.ask((QUESTION,), Bill())
    except RateLimited:
        return None
    except ModelUnknown as error:
        return await _name_or_address(model, error)
    except Stalled as error:
        hint = f"see whether it answers at all: curl {model.base_url}/models; then begin again"
        return Stalled(f"{error.what}, at {model.base_url}", hint=hint)
    except ModelError as error:
        return error
    return None


async def _name_or_address(model: Model, error: ModelUnknown) -> ModelError:
    """Say which of the two is wrong: a server that lists its models has the right address."""
    async with open_http(model) as http:
        names = await _listed(http, model)
    if names is None:
        return ModelUnknown(
            f"{model.base_url}: no OpenAI-compatible API there (HTTP 404, and no list of models)",
            hint="correct base_url; it usually ends in /v1",
        )
    if model.name in names:
        return error
    shown = ", ".join(names[:_NAMES_SHOWN]) + (", ..." if len(names) > _NAMES_SHOWN else "")
    return ModelUnknown(
        f"no model is called {model.name!r} at {model.base_url}", hint=f"it has: {shown or 'none'}"
    )


async def _listed(http: aiohttp.ClientSession, model: Model) -> list[str] | None:
    """Return the names of the server's models; None if it does not tell."""
    import aiohttp

    key = model.api_key()
    headers = {"Authorization": f"Bearer {key}"} if key else {}
    with contextlib.suppress(aiohttp.ClientError, ValueError, TypeError, KeyError, TimeoutError):
        async with (
            asyncio.timeout(_PATIENCE_SECONDS),
            http.get(f"{model.base_url}/models", headers=headers) as response,
        ):
            content = await response.json()
            return sorted(str(each["id"]) for each in content["data"])
    return None
