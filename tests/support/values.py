"""Values and Structs in the same words, whether the code is compiled or not."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct, structs

from tidings.core.values import changed

Kind = TypeVar("Kind")


def fields_of(value: Any) -> dict[str, Any]:
    names = value.__struct_fields__ if isinstance(value, Struct) else value.fields()
    return {name: getattr(value, name) for name in names}


def replace(value: Kind, **changes: Any) -> Kind:
    return (
        structs.replace(value, **changes)
        if isinstance(value, Struct)
        else changed(value, **changes)
    )
