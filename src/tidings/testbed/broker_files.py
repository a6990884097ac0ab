"""How is a configuration written down for another process? As TOML, one line per field."""

from __future__ import annotations

import json
from math import isinf
from typing import Any

import msgspec


def to_toml(value: msgspec.Struct) -> str:
    """The value as a document that reads back as the same value; absent optionals stay absent."""
    document = msgspec.to_builtins(value)
    return "".join(f"{key} = {_text(item)}\n" for key, item in _present(document))


def _present(table: dict[str, Any]) -> list[tuple[str, Any]]:
    return [(key, item) for key, item in table.items() if item is not None]


def _text(value: Any) -> str:
    match value:
        case bool():
            return "true" if value else "false"
        case str():
            return json.dumps(value, ensure_ascii=False)
        case float() if isinf(value):
            return "inf" if value > 0 else "-inf"
        case dict():
            return "{" + ", ".join(f"{key} = {_text(item)}" for key, item in _present(value)) + "}"
        case list() | tuple():
            return "[" + ", ".join(map(_text, value)) + "]"
        case _:
            return repr(value)
