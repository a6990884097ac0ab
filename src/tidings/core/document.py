"""From a document to checked values: where a person's mistakes are found, and named."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, TypeVar

import msgspec

from tidings.core.errors import ConfigError, one_of
from tidings.core.near_names import suggestion

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


def culprit(field: str, parameters: Mapping[str, Any]) -> str | None:
    """The parameter, of those that replace values, that an error about a field is about."""
    for parameter in parameters:
        if f"{field}.".startswith((f"{parameter}.", f"{parameter}[")):
            return parameter
    names = [
        parameter
        for parameter, value in parameters.items()
        if parameter.endswith(f".{field}")
        or parameter.startswith(f"{field}.")  # a value where a table belongs, or the reverse
        or (isinstance(value, dict) and field in value)  # a whole topology
    ]
    return names[0] if len(names) == 1 else None


def convert(
    document: Mapping[str, Any], kind: type[T], source: str, hidden: Collection[str] = ()
) -> T:
    """The document as a value of this kind, or an error that names field, value and accepted.

    `hidden` are fields that no document has; errors do not offer them.
    """
    try:
        return msgspec.convert(document, kind)
    except msgspec.ValidationError as error:
        raise _explained(str(error), document, kind, source, hidden) from None


def field_names(kind: type[msgspec.Struct], hidden: Collection[str] = ()) -> list[str]:
    """Every field of a kind of document, with the tables that it is in: `links.loss_ratio`."""
    return [name for name in _names_in(msgspec.inspect.type_info(kind), "") if name not in hidden]


def _names_in(kind: Any, prefix: str) -> Iterator[str]:
    for field in getattr(kind, "fields", ()):
        yield f"{prefix}{field.encode_name}"
        yield from _names_in(field.type, f"{prefix}{field.encode_name}.")


def _explained(
    problem: str,
    document: Mapping[str, Any],
    kind: type[msgspec.Struct],
    source: str,
    hidden: Collection[str],
) -> ConfigError:
    text, _, where = problem.partition(" - at `$")
    where = where.rstrip("`").lstrip(".")
    unknown = re.search(r"unknown field `(.+)`", text)
    if unknown:
        field = f"{where}.{unknown[1]}".lstrip(".")
        accepted = _known_fields(kind, field, hidden)
        return ConfigError(source, field, value_at(document, field), accepted)
    if not where and (missing := _missing(text)):
        return ConfigError(source, missing, None, f"a document with the field {missing}")
    value = value_at(document, where)
    return ConfigError(
        source, where or "document", value, _accepted(text, _type_at(kind, where), value)
    )


def _known_fields(kind: type[msgspec.Struct], unknown: str, hidden: Collection[str]) -> str:
    """The fields that could stand where there is one that is not known; or the same in another
    table, if that is the mistake."""
    table, _, name = unknown.rpartition(".")
    fields = getattr(_type_at(kind, table), "fields", ())
    there = [field.encode_name for field in fields]
    known = [other for other in there if f"{table}.{other}".lstrip(".") not in hidden]
    if not known:
        return "no field at all"
    if suggestion(name, known):
        return one_of(known, name, "one of the fields")
    everywhere = field_names(kind, hidden)
    alike = [other for other in everywhere if suggestion(name, [other.rpartition(".")[2]])]
    meant = suggestion(unknown, alike)
    return f"one of the fields {', '.join(known)}{'.' if meant else ''}{meant}"


def _missing(problem: str) -> str:
    found = re.search(r"missing required field `(.+)`", problem)
    return found[1] if found else ""


def _accepted(problem: str, expected: Any, value: object) -> str:
    """What would do, from what msgspec says and the type that was expected."""
    if isinstance(expected, msgspec.inspect.LiteralType):
        return one_of(map(str, expected.values), value)
    if isinstance(expected, msgspec.inspect.UnionType):
        words = [str(word) for kind in expected.types for word in getattr(kind, "values", ())]
        if words:
            return one_of(words, value, "a whole number, 0 or more, or")
    if missing := _missing(problem):
        return f"a table with the field {missing}"
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
