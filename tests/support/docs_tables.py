"""How the pages of parameters show a default."""

from __future__ import annotations

from typing import Any

import msgspec


def shown(field: msgspec.structs.FieldInfo) -> str:
    """The default of a parameter as the page shows it, in TOML's words."""
    if field.default is msgspec.NODEFAULT:
        return "required"
    return f"`{_toml(field.default)}`" if field.default is not None else "none"


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f'"{value}"'
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return f"{value:g}" if isinstance(value, float) else str(value)
