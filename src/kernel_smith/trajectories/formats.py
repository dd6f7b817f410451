"""The rows of data sets, in the formats that trainers read. Each says which columns it has."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from kernel_smith.errors import BadInput
from kernel_smith.records import Example

Row = dict[str, Any]
Split = Literal["train", "validation"]
FileKind = Literal["jsonl", "parquet"]
# What a column holds: text, a number, messages, or columns of its own.
Column = Literal["text", "integer", "number", "messages"] | Mapping[str, "Column"]

DATA_SOURCE = "kernel_rl"
ENTRY_POINT = "ModelNew"


@dataclass(frozen=True)
class Place:
    """Where in a data set a row stands."""

    split: Split
    index: int


@dataclass(frozen=True)
class Format:
    name: str
    explains: str
    purpose: Literal["sft", "rl"]
    columns: Mapping[str, Column]
    row: Callable[[Example, Place], Row]
    file: FileKind = "jsonl"


def find_format(name: str) -> Format:
    if name not in FORMATS:
        known = ", ".join(FORMATS)
        raise BadInput(f"no format is called {name!r}", hint=f"--format takes one of: {known}")
    return FORMATS[name]


def _question(example: Example) -> list[Row]:
    return [message.model_dump() for message in example.messages]


def _answer(example: Example) -> list[Row]:
    return [{"role": "assistant", "content": example.answer}]


def _trl_sft(example: Example, place: Place) -> Row:
    return {
        "id": example.id,
        "prompt": _question(example),
        "completion": _answer(example),
        "task_name": example.task.name,
        "family": example.task.family,
    }


def _trl_rl(example: Example, place: Place) -> Row:
    return {
        "id": example.id,
        "prompt": _question(example),
        "task": _task(example),
        "backend": example.backend,
        "parent": example.parent,
        "mode": example.mode,
        "gain": example.gain.certain if example.gain is not None else None,
    }


def _messages(example: Example, place: Place) -> Row:
    return {"messages": _question(example) + _answer(example)}


def _paper_sft(example: Example, place: Place) -> Row:
    return {"_id": example.id, "messages": _question(example) + _answer(example)}


def _verl(example: Example, place: Place) -> Row:
    return {
        "data_source": DATA_SOURCE,
        "prompt": _question(example),
        "ability": "kernel",
        "reward_model": {"style": "rule", "ground_truth": _ground_truth(example)},
        "extra_info": {"index": place.index, "split": place.split, **_about(example)},
    }


def _paper_rl(example: Example, place: Place) -> Row:
    return {
        "data_source": DATA_SOURCE,
        "reward_model": {"ground_truth": _ground_truth(example)},
        "extra_info": _about(example),
        "message": _question(example),
    }


def _about(example: Example) -> Row:
    """What a scorer needs to judge an answer."""
    return {
        "id": example.id,
        "entry_point": ENTRY_POINT,
        "parent_code": example.parent,
        "backend": example.backend,
        "mode": example.mode,
        "task": _task(example),
    }


def _ground_truth(example: Example) -> str:
    return json.dumps({"reference_code": example.task.source})


def _task(example: Example) -> str:
    """Where its files lie means nothing to whoever gets the data."""
    return example.task.model_dump_json(exclude={"path", "starts"})


_ABOUT: Mapping[str, Column] = dict.fromkeys(
    ("id", "entry_point", "parent_code", "backend", "mode", "task"), "text"
)

FORMATS: Mapping[str, Format] = {
    each.name: each
    for each in (
        Format(
            name="trl-sft",
            explains="prompt and completion as messages, for TRL and `kernel-smith train sft`",
            purpose="sft",
            columns={
                "id": "text",
                "prompt": "messages",
                "completion": "messages",
                "task_name": "text",
                "family": "text",
            },
            row=_trl_sft,
        ),
        Format(
            name="trl-rl",
            explains="prompts with what rewards need, for TRL and `kernel-smith train rl`",
            purpose="rl",
            columns={
                "id": "text",
                "prompt": "messages",
                "task": "text",
                "backend": "text",
                "parent": "text",
                "mode": "text",
                "gain": "number",
            },
            row=_trl_rl,
        ),
        Format(
            name="messages",
            explains="whole conversations, as OpenAI's fine-tuning and most trainers take them",
            purpose="sft",
            columns={"messages": "messages"},
            row=_messages,
        ),
        Format(
            name="verl",
            explains="verl's rows; `kernel_smith/training/verl_reward.py` scores answers",
            purpose="rl",
            columns={
                "data_source": "text",
                "prompt": "messages",
                "ability": "text",
                "reward_model": {"style": "text", "ground_truth": "text"},
                "extra_info": {"index": "integer", "split": "text", **_ABOUT},
            },
            row=_verl,
            file="parquet",
        ),
        Format(
            name="paper-sft",
            explains="conversations in the shape that Kernel-Smith's authors published",
            purpose="sft",
            columns={"_id": "text", "messages": "messages"},
            row=_paper_sft,
        ),
        Format(
            name="paper-rl",
            explains="reinforcement learning rows in the shape that its authors published",
            purpose="rl",
            columns={
                "data_source": "text",
                "reward_model": {"ground_truth": "text"},
                "extra_info": _ABOUT,
                "message": "messages",
            },
            row=_paper_rl,
        ),
    )
}
