"""The settings of a training: a TOML file, what the command line adds to it, and their defaults."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from kernel_smith.errors import BadInput
from kernel_smith.tasks.syntax import did_you_mean


class _Settings(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Lora(_Settings):
    """An adapter of low rank, in place of all weights."""

    rank: int = Field(default=16, ge=1)
    alpha: float = Field(default=32.0, gt=0)
    dropout: float = Field(default=0.0, ge=0, lt=1)
    targets: tuple[str, ...] = Field(
        default=("all-linear",), min_length=1, description="layers; all-linear: every linear one"
    )


class RewardSettings(_Settings):
    """What an answer is worth. Weights of 0 leave a part out."""

    scale: Literal["linear", "log2"] = Field(
        default="linear",
        description="what is certain of the gain over the parent, less 1, or its binary logarithm",
    )
    low: float = Field(default=0.0, description="no correct program's gain is worth less")
    high: float = Field(default=9.0, description="and none more")
    execution: float = Field(default=1.0, ge=0, description="weight of the gain")
    rule: float = Field(default=0.0, ge=0, description="weight of being a real kernel")
    profiling: float = Field(
        default=0.0, ge=0, description="weight of the share of time in authored kernels"
    )
    staged: float = Field(
        default=0.0, ge=0, description="weight of having got as far as parsed, compiled, correct"
    )
    reject_lazy: bool = Field(
        default=False, description="leave answers out at random whose own kernels hardly run"
    )
    unparsed: float = Field(default=0.0, le=0, description="for an answer without a program")
    cheating: float = Field(default=0.0, le=0, description="for a named cheat")

    @model_validator(mode="after")
    def _low_below_high(self) -> Self:
        if self.low >= self.high:
            raise ValueError(f"`low` ({self.low}) must be less than `high` ({self.high})")
        return self


class TrainingSettings(_Settings):
    """What SFT and RL have in common."""

    data: Path = Field(description="a file of rows, or a folder with such files")
    model: Path = Field(description="a model's folder, or a GGUF file")
    output: Path
    lora: Lora | Literal[False] = Field(default=Lora(), description="false: train all weights")
    learning_rate: float = Field(default=1e-5, gt=0)
    schedule: Literal["constant", "linear", "cosine"] = "constant"
    warmup_steps: int = Field(default=0, ge=0)
    steps: int = Field(default=100, ge=1, description="updates of the weights, in all")
    micro_batch: int = Field(default=1, ge=1, description="sequences in memory at once")
    sequence_length: int = Field(
        default=16384, ge=16, description="tokens of question and answer; longer rows are left out"
    )
    bf16: bool | None = Field(default=None, description="null: where the GPU can")
    gradient_checkpointing: bool = Field(default=True, description="less memory, more time")
    seed: int = 0
    save_every: int = Field(default=20, ge=1, description="steps between checkpoints")
    keep_checkpoints: int = Field(default=2, ge=1)
    merge: bool = Field(default=True, description="also write the model with its adapter merged")


class SftSettings(TrainingSettings):
    """Learning from answers that were good."""

    learning_rate: float = Field(default=1e-4, gt=0)
    schedule: Literal["constant", "linear", "cosine"] = "cosine"
    batch: int = Field(default=8, ge=1, description="examples per step and process")

    @model_validator(mode="after")
    def _batch_divides(self) -> Self:
        return _divisible(self, self.batch, "`batch`")


class RlSettings(TrainingSettings):
    """Learning from what the judge says of one's own answers."""

    entries: int = Field(default=4, ge=1, description="questions per step and process")
    samples: int = Field(default=8, ge=2, description="answers to each of them")
    max_new_tokens: int = Field(default=4096, ge=1, description="of an answer")
    temperature: float = Field(default=0.6, gt=0)
    top_p: float = Field(default=0.95, gt=0, le=1)
    generate_at_once: int | None = Field(
        default=None, ge=1, description="answers; the judge has the first while others are written"
    )
    advantage: Literal["group", "leave-one-out"] = "group"
    beta: float = Field(default=0.0, ge=0, description="weight of staying near the first model")
    reward: RewardSettings = RewardSettings()
    call_seconds: float = Field(
        default=10.0, gt=0, description="a program whose call takes longer is ended"
    )
    measure_seconds: float = Field(
        default=1.0, gt=0, description="longest measurement of each workload"
    )
    patience_minutes: float = Field(
        default=10.0, ge=0, description="to wait for an engine that has gone away"
    )

    @model_validator(mode="after")
    def _sizes_fit(self) -> Self:
        if self.max_new_tokens >= self.sequence_length:
            raise ValueError("`max_new_tokens` must be less than `sequence_length`")
        return _divisible(self, self.entries * self.samples, "`entries` times `samples`")


class ChooserSettings(TrainingSettings):
    """Learning which of the mutator's edits to choose, by one letter."""

    data: Path = Field(description="a file of questions, as `kernel-smith data choices` writes it")
    model: Path = Field(
        description="a model's folder, a GGUF file, or an adapter to go on with, as RL after SFT"
    )
    objective: Literal["sft", "rl"] = Field(
        default="sft",
        description="the likelihood of what certainly gained; or the reward that is expected",
    )
    batch: int = Field(default=16, ge=1, description="questions per step and process")
    entropy: float = Field(default=0.01, ge=0, description="RL: what being undecided is worth")
    folds: int = Field(
        default=6, ge=2, description="the families in so many parts, the first of which validates"
    )
    learning_rate: float = Field(default=1e-4, gt=0)
    sequence_length: int = Field(
        default=8192, ge=16, description="tokens of a question; longer ones are left out"
    )
    merge: bool = False

    @model_validator(mode="after")
    def _batch_divides(self) -> Self:
        return _divisible(self, self.batch, "`batch`")


# What may differ between the two halves of a training that was stopped and resumed.
MAY_CHANGE = frozenset(
    {"output", "steps", "save_every", "keep_checkpoints", "merge", "patience_minutes"}
)

_PARTS: Mapping[str, type[BaseModel]] = {"lora": Lora, "reward": RewardSettings}

Kind = TypeVar("Kind", bound=TrainingSettings)


def read_settings(kind: type[Kind], file: Path | None, given: Mapping[str, Any]) -> Kind:
    """The settings of a file with those `given` on top; parts of `lora` and `reward` are joined."""
    values = _read(file) if file is not None else {}
    where = str(file) if file is not None else "the settings"
    _check_names(kind, values, where)
    for name, value in given.items():
        if isinstance(value, Mapping) and isinstance(values.get(name), dict):
            values[name] = {**values[name], **value}
        else:
            values[name] = dict(value) if isinstance(value, Mapping) else value
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise _explained(error, where) from None


def _read(file: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        hint = "give an existing file, or leave --config out"
        raise BadInput(f"{file} cannot be read: {error.strerror}", hint=hint) from None
    except ValueError as error:
        raise BadInput(f"{file} is no TOML: {error}", hint="mend that line") from None


def _check_names(kind: type[BaseModel], values: dict[str, Any], where: str) -> None:
    """Refuses names that do not exist, with the nearest that does."""
    for name, value in values.items():
        field = kind.model_fields.get(name)
        if field is None:
            known = sorted(kind.model_fields)
            hint = did_you_mean(name, known, otherwise=f"the settings are: {', '.join(known)}")
            raise BadInput(f"{where}: there is no setting `{name}`", hint=hint)
        inner = _PARTS.get(name)
        if inner is not None and isinstance(value, dict):
            _check_names(inner, value, f"{where}, [{name}]")


def _explained(error: ValidationError, where: str) -> BadInput:
    first = error.errors()[0]
    name = ".".join(map(str, first["loc"]))
    what = first["msg"].removeprefix("Value error, ")
    if first["type"] == "missing":
        return BadInput(f"`{name}` is missing", hint=f"give --{name}, or write it into a file")
    return BadInput(
        f"{where}: {f'`{name}`: ' if name else ''}{what}", hint="docs/training.md lists what fits"
    )


def _divisible(settings: Kind, batch: int, what: str) -> Kind:
    if batch % settings.micro_batch:
        raise ValueError(f"`micro_batch` ({settings.micro_batch}) must divide {what} ({batch})")
    return settings
