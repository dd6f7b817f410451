"""Which models to ask, and how: from a TOML file, a command line, or a stored run."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from typing import Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import Field, ValidationError, field_validator, model_validator

from kernel_smith.errors import BadInput
from kernel_smith.loopback import is_loopback
from kernel_smith.records import Record

# The variables that OpenAI's own clients read, and the address where the second is not set.
_OPENAI_KEY, _OPENAI_ADDRESS = "OPENAI_API_KEY", "OPENAI_BASE_URL"
_OPENAI = "https://api.openai.com/v1"


class Model(Record):
    """One model behind an OpenAI-compatible endpoint. Prices are dollars per million tokens."""

    name: str = Field(min_length=1)
    base_url: str = Field(description="up to and including /v1")
    api_key_env: str | None = Field(
        default=None, description="the environment variable that holds the key; none: send no key"
    )
    weight: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    temperature: float | None = Field(default=0.6, ge=0, le=2, description='"none": not sent')
    top_p: float | None = Field(default=0.95, gt=0, le=1, description='"none": not sent')
    max_tokens: int = Field(default=16384, ge=1, description="of an answer, thoughts included")
    api: Literal["chat", "responses"] = Field(
        default="chat", description="the protocol: /chat/completions or /responses"
    )
    max_tokens_field: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    price_prompt: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    price_cached: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    price_completion: float | None = Field(default=None, ge=0, allow_inf_nan=False)
    requests_per_minute: int | None = Field(default=None, ge=1)
    tokens_per_minute: int | None = Field(default=None, ge=1)
    deadline_seconds: float = Field(
        default=900, gt=0, description="for one answer: waiting, retries and all"
    )
    silence_seconds: float = Field(
        default=180, gt=0, description="without a byte from the server, the request has failed"
    )
    retries: int = Field(default=5, ge=0)
    backoff_seconds: float = Field(default=1.0, ge=0, description="before the first retry")
    extra: dict[str, Any] = Field(
        default_factory=dict, description="more fields of the request, e.g. reasoning_effort"
    )

    @field_validator("temperature", "top_p", mode="before")
    @classmethod
    def _none_in_words(cls, given: object) -> object:
        """Some models refuse to be told. Neither TOML nor a command line knows nothing."""
        return None if given == "none" else given

    @field_validator("base_url")
    @classmethod
    def _plain_address(cls, url: str) -> str:
        parts = urlsplit(url)
        plain = not parts.query and not parts.fragment and parts.port != 0  # raises for 99999
        if parts.scheme not in ("http", "https") or not parts.hostname or not plain:
            raise ValueError(f"expected http://HOST:PORT/v1, got {url!r}")
        if parts.username or parts.password:
            raise ValueError("addresses are stored with the run: name the key with api_key_env")
        return url.rstrip("/")

    @property
    def priced(self) -> bool:
        return self.price_prompt is not None and self.price_completion is not None

    def api_key(self) -> str | None:
        return os.environ.get(self.api_key_env) or None if self.api_key_env else None

    def dollars(self, prompt: int, cached: int, completion: int) -> float:
        """Return what the tokens cost; nothing where no price is known."""
        full = self.price_prompt or 0.0
        reduced = full if self.price_cached is None else self.price_cached
        plain = (prompt - cached) * full + cached * reduced
        return (plain + completion * (self.price_completion or 0.0)) / 1e6


class Settings(Record):
    """All that decides how the model proposer works. Keys are named, never stored."""

    models: tuple[Model, ...] = Field(min_length=1)
    mode: Literal["auto", "full", "edits"] = Field(
        default="auto",
        description="ask for whole programs, or for SEARCH/REPLACE blocks; auto: blocks where the "
        "program has more than 300 lines",
    )
    max_prompt_tokens: int = Field(default=32000, ge=256, description="estimated")
    max_repairs: int = Field(
        default=3,
        ge=0,
        description="follow-ups to one failed program at most; wrong values get one of them",
    )
    asks_again: bool = Field(
        default=True, description="once more, where an answer holds no program that can be used"
    )
    give_up_after: int | None = Field(
        default=10,
        ge=1,
        description="answers of no use in a row, after which a model is asked no more; none: never",
    )
    guides: bool = Field(
        default=True, description="say what is known about fast kernels for this device"
    )
    templates: str | None = Field(
        default=None,
        description="a folder whose files replace templates of the same name; `brief`: ours, short",
    )

    @model_validator(mode="after")
    def _names_are_unique(self) -> Self:
        names = [model.name for model in self.models]
        if len(set(names)) != len(names):
            raise ValueError(f"names of models must differ, got {names}")
        return self


def read_settings(path: Path) -> Settings:
    """Return the settings of a TOML file."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(
            f"{path}: cannot be read ({error.strerror})", hint="name a TOML file with [[models]]"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise BadInput(f"{path}: not TOML: {error}", hint="mend the line named above") from None
    models = content.get("models")
    if isinstance(models, list):
        content["models"] = [
            _filled_in(each) if isinstance(each, dict) else each for each in models
        ]
    return make_settings(content, where=str(path))


def make_settings(content: dict[str, Any], *, where: str = "model settings") -> Settings:
    """Settings from plain data, such as a run's stored configuration."""
    try:
        return Settings.model_validate(content)
    except ValidationError as error:
        raise BadInput(f"{where}: {_first(error)}", hint=_example()) from None


def parse_model(text: str) -> Model:
    """Return a model from a command line: `NAME` or `NAME@BASE_URL`, then `,key=value` for all
    else."""
    head, *pairs = text.split(",")
    name, at, address = head.partition("@http")
    if (not at and "@" in head) or not all("=" in pair for pair in pairs):
        raise BadInput(
            f"not a model: {text!r}",
            hint="write NAME[@BASE_URL][,key=value...], e.g. "
            "qwen@http://127.0.0.1:8000/v1,weight=2,api_key_env=MY_KEY",
        )
    fields: dict[str, Any] = dict(pair.split("=", 1) for pair in pairs)
    fields |= {"name": name} | ({"base_url": "http" + address} if at else {})
    try:
        return Model.model_validate(_filled_in(fields))
    except ValidationError as error:
        known = ", ".join(name for name in Model.model_fields if name not in ("name", "base_url"))
        raise BadInput(f"model {name!r}: {_first(error)}", hint=f"known keys: {known}") from None


def _filled_in(fields: dict[str, Any]) -> dict[str, Any]:
    """Take what is not said from the environment. OpenAI's key goes to that address alone."""
    usual = (os.environ.get(_OPENAI_ADDRESS) or _OPENAI).rstrip("/")
    filled = {"base_url": usual} | fields
    if str(filled["base_url"]).rstrip("/") != usual:
        return filled
    if usual == _OPENAI:
        filled = {"max_tokens_field": "max_completion_tokens"} | filled
    if os.environ.get(_OPENAI_KEY) or not is_loopback(urlsplit(usual).hostname or ""):
        filled = {"api_key_env": _OPENAI_KEY} | filled
    return filled


def _first(error: ValidationError) -> str:
    first = error.errors(include_url=False, include_input=False)[0]
    place = ".".join(str(part) for part in first["loc"])
    said = first["msg"].removeprefix("Value error, ")
    return f"{place}: {said}" if place else said


def _example() -> str:
    return 'the least is [[models]] with name = "..." and base_url = "http://127.0.0.1:8000/v1"'
