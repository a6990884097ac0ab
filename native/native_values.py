"""What is a value that only lives in memory? The twin of `core/values.py` that is compiled."""

from __future__ import annotations

from typing import Any, TypeVar

AnyValue = TypeVar("AnyValue", bound="Value")


class Value:
    """Never changes, and is equal to another one of the same fields."""

    def fields(self) -> tuple[str, ...]:
        """Their names."""
        return ()

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and all(
            getattr(self, name) == getattr(other, name) for name in self.fields()
        )

    def __hash__(self) -> int:
        return hash(tuple([getattr(self, name) for name in self.fields()]))

    def __repr__(self) -> str:
        shown = ", ".join([f"{name}={getattr(self, name)!r}" for name in self.fields()])
        return f"{type(self).__name__}({shown})"


class ChangingValue(Value):
    """The same, of which fields change in the hands of its one owner."""


def changed(value: AnyValue, **changes: Any) -> AnyValue:
    """The same, but for these fields."""
    kept = {name: getattr(value, name) for name in value.fields()}
    kept.update(changes)
    return type(value)(**kept)
