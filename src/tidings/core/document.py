"""From a document to checked values: where a person's mistakes are found, and named."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, TypeVar

import msgspec

from tidings.core.errors import ConfigError

T = TypeVar("T", bound=msgspec.Struct)


def changed(document: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The document with some values replaced; `links.loss_ratio` names a field of a table."""
    result = dict(document)
    for dotted, value in changes.items():
        *tables, name = dotted.split(".")
        table = result
        for key in tables:
            inner = table.get(key, {})
            if not isinstance(inner, Mapping):
                raise ConfigError("change", dotted, value, f"a field, but {key} is no table")
            table[key] = table = dict(inner)
        table[name] = value
    return result


def convert(document: Mapping[str, Any], kind: type[T], source: str) -> T:
    """The document as a value of this kind, or an error that names field, value and accepted."""
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise _explained(str(error), document, kind, source) from None


def _explained(
    problem: str, document: Mapping[str, Any], kind: type[msgspec.Struct], source: str
) -> ConfigError:
    text, _, where = problem.partition(" - at `$")
    where = where.rstrip("`").lstrip(".")
    unknown = re.search(r"unknown field `(.+)`", text)
    if unknown:
        field = f"{where}.{unknown[1]}".lstrip(".")
        names = [field.encode_name for field in getattr(_type_at(kind, where), "fields", ())]
        accepted = f"one of the fields {', '.join(names)}" if names else "no field at all"
        return ConfigError(source, field, value_at(document, field), accepted)
    accepted = _accepted(text, _type_at(kind, where))
    return ConfigError(source, where or "document", value_at(document, where), accepted)


def _accepted(problem: str, expected: Any) -> str:
    """What would do, from what msgspec says and the type that was expected."""
    if isinstance(expected, msgspec.inspect.LiteralType):
        return f"one of {', '.join(map(str, expected.values))}"
    missing = re.search(r"missing required field `(.+)`", problem)
    if missing:
        return f"a table with the field {missing[1]}"
    accepted = problem.removeprefix("Expected ").partition(", got ")[0].replace("`", "")
    return "a table" if accepted == "object" else accepted


def _type_at(kind: type[msgspec.Struct], where: str) -> Any:
    """The type of what belongs at a place of the document."""
    found: Any = msgspec.inspect.type_info(kind)
    for name in re.findall(r"[A-Za-z_]\w*", where):
        for field in getattr(found, "fields", ()):
            if field.encode_name == name:
                found = field.type
        found = getattr(found, "item_type", found)
    return found


def value_at(document: Any, where: str) -> Any:
    """What stands at a place such as `faults.schedule[2].broker`."""
    for name, index in re.findall(r"([A-Za-z_]\w*)|\[(\d+)\]", where):
        try:
            document = document[name] if name else document[int(index)]
        except (KeyError, IndexError, TypeError):
            return None
    return document
