"""What is a value that only lives in memory? One that no wire, file or user ever sees.

It is a `Struct` while Tidings is interpreted. Where Tidings is compiled, the build makes a native
class of it instead, whose fields are read without a look-up (docs/guide/develop.md). So for values
there are neither encoders nor msgspec's `structs` functions, only what is here.
"""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct
from msgspec.structs import replace

AnyValue = TypeVar("AnyValue", bound="Value")


class Value(Struct, frozen=True, gc=False):
    """Never changes, and is equal to another one of the same fields."""


class ChangingValue(Struct, gc=False):
    """The same, of which fields change in the hands of its one owner."""


def changed(value: AnyValue, **changes: Any) -> AnyValue:
    """The same, but for these fields."""
    return replace(value, **changes)
