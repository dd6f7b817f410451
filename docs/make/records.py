"""The page about records, from their fields: what files and answers hold."""

from __future__ import annotations

import typing
from enum import StrEnum
from typing import Any

from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from text import NOTE, code, joined, prose, table

from kernel_smith.records import MEANINGS, Event, Record
from kernel_smith.records.schema_files import DESCRIBED

_SCHEMAS = "src/kernel_smith/records/schemas"


def page() -> str:
    """Return the page."""
    lines = ["# Records", "", NOTE, ""]
    lines += [
        "What `--json` prints, services answer and stores keep. Records do not change once made,",
        "know no other fields than these, and say which version of a schema they follow. The",
        f"JSON schemas of those in the first part are in `{_SCHEMAS}`.",
        "",
        "## Verdicts",
        "",
        "An evaluation ends at one stage; what is not `ok` has one reason.",
        "",
    ]
    rows = (
        (code(meaning.stage), code(reason), meaning.sentence, meaning.advice)
        for reason, meaning in MEANINGS.items()
    )
    lines += table(("stage", "reason", "meaning", "advice"), rows)
    lines += ["## Records with a schema", ""]
    for record in _ON_THEIR_OWN:
        lines += _section(record)
    lines += [
        "## Events of a run",
        "",
        "In the order of a store; `optimize --json` prints them.",
        "",
    ]
    for record in _EVENTS:
        lines += _section(record)
    lines += ["## Parts of these", ""]
    for part in sorted(_ON_THIS_PAGE, key=lambda one: one.__name__):
        if part not in (*_ON_THEIR_OWN, *_EVENTS):
            lines += _section(part)
    return joined(lines)


def fields_of(record: type[Record], page: str = "") -> list[str]:
    """Return the table of a record's fields; `page` is where records are, if not on the same."""
    rows = (
        (code(name), _type_text(field.annotation, page), _default(field), field.description or "")
        for name, field in record.model_fields.items()
        if name != "schema_version"
    )
    return table(("field", "type", "default", "meaning"), rows)


def _section(part: type) -> list[str]:
    lines = [f"### {part.__name__}", "", *prose(part.__dict__.get("__doc__"))]
    if issubclass(part, StrEnum):
        return [*lines, " · ".join(code(one.value) for one in part), ""]
    return [*lines, *fields_of(part)]


def _parts(records: list[type[Record]]) -> set[type]:
    """Return every record and vocabulary that occurs in these, however deep."""
    found: set[type] = set()
    ahead: list[Any] = list(records)
    while ahead:
        one = ahead.pop()
        if isinstance(one, type) and issubclass(one, Record | StrEnum):
            if one in found:
                continue
            found.add(one)
            if issubclass(one, Record):
                ahead += [field.annotation for field in one.model_fields.values()]
        ahead += typing.get_args(one)
    return found


def _type_text(annotation: Any, page: str) -> str:
    """Return an annotation as it would be written, with links to what the page describes."""
    if annotation is type(None):
        return "null"
    if annotation in _ON_THIS_PAGE:
        return f"[{annotation.__name__}]({page}#{annotation.__name__.lower()})"
    origin, inside = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Annotated:
        return _type_text(inside[0], page)
    if origin is typing.Literal:
        return " or ".join(code(f'"{value}"') for value in inside)
    if origin is None:
        return getattr(annotation, "__name__", str(annotation))
    texts = [_type_text(one, page) for one in inside if one is not Ellipsis]
    if origin in (tuple, list, set, frozenset):
        return f"list of {', '.join(dict.fromkeys(texts))}"
    if origin is dict:
        return f"{texts[0]} -> {texts[1]}"
    return " or ".join(texts)


def _default(field: FieldInfo) -> str:
    if field.is_required():
        return "required"
    value = field.get_default(call_default_factory=True, validated_data={})
    if value is None or value is PydanticUndefined:
        return "null"
    if isinstance(value, Record):
        return "its own defaults"
    if isinstance(value, StrEnum | str):
        return code(f'"{value}"')
    if isinstance(value, tuple | list):
        return ", ".join(code(str(getattr(one, "name", one)).lower()) for one in value) or "none"
    if isinstance(value, dict):
        return "none" if not value else code(str(value))
    return code(str(value).lower() if isinstance(value, bool) else str(value))


_ON_THEIR_OWN = [described.record for described in DESCRIBED.values()]
_EVENTS: list[type[Record]] = list(typing.get_args(typing.get_args(Event)[0]))
_ON_THIS_PAGE = _parts([*_ON_THEIR_OWN, *_EVENTS])
