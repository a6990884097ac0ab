"""What is a predicate made of, and when is it true?

A tree of frozen values. `evaluate` answers True, False or None (unknown) by Kleene's logic; only
True at the top is a match. `str` gives the canonical text, which parses back to an equal tree.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal

from msgspec import Struct

from tidings.core.predicate.values import READERS, Constant, Kind, literal_text

Attributes = Mapping[str, object]
Operator = Literal["==", "!=", "<", "<=", ">", ">="]

OPERATORS: Final[dict[Operator, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
NEGATED: Final[dict[Operator, Operator]] = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
}


class Predicate(Struct, frozen=True):
    """A condition on the attributes of a message."""

    def matches(self, attributes: Attributes) -> bool:
        """Whether the message is wanted; unknown is no."""
        return self.evaluate(attributes) is True

    def evaluate(self, attributes: Attributes) -> bool | None:
        """True, False, or None where a missing or unreadable attribute leaves it unknown."""
        raise NotImplementedError


class Comparison(Predicate, frozen=True):
    """`attribute operator constant`; the kind separates 1 from true, which are equal in Python."""

    attribute: str
    operator: Operator
    kind: Kind
    constant: Constant

    def evaluate(self, attributes: Attributes) -> bool | None:
        value = READERS[self.kind](attributes.get(self.attribute))
        return None if value is None else OPERATORS[self.operator](value, self.constant)

    def __str__(self) -> str:
        return f"{self.attribute} {self.operator} {literal_text(self.kind, self.constant)}"


class Membership(Predicate, frozen=True):
    """`attribute in (...)` or `attribute not in (...)`, over constants of one kind."""

    attribute: str
    negated: bool
    kind: Kind
    constants: tuple[Constant, ...]

    def evaluate(self, attributes: Attributes) -> bool | None:
        value = READERS[self.kind](attributes.get(self.attribute))
        return None if value is None else (value in self.constants) is not self.negated

    def __str__(self) -> str:
        listed = ", ".join(literal_text(self.kind, constant) for constant in self.constants)
        return f"{self.attribute} {'not in' if self.negated else 'in'} ({listed})"


class Not(Predicate, frozen=True):
    operand: Predicate

    def evaluate(self, attributes: Attributes) -> bool | None:
        value = self.operand.evaluate(attributes)
        return None if value is None else not value

    def __str__(self) -> str:
        return f"not {_wrapped(self.operand, And, Or)}"


class And(Predicate, frozen=True):
    """True if all parts are; false if one is, whatever is unknown about the others."""

    parts: tuple[Predicate, ...]

    def evaluate(self, attributes: Attributes) -> bool | None:
        result: bool | None = True
        for part in self.parts:
            value = part.evaluate(attributes)
            if value is False:
                return False
            if value is None:
                result = None
        return result

    def __str__(self) -> str:
        return " and ".join(_wrapped(part, Or) for part in self.parts)


class Or(Predicate, frozen=True):
    """True if one part is, whatever is unknown about the others; false if all are."""

    parts: tuple[Predicate, ...]

    def evaluate(self, attributes: Attributes) -> bool | None:
        result: bool | None = False
        for part in self.parts:
            value = part.evaluate(attributes)
            if value is True:
                return True
            if value is None:
                result = None
        return result

    def __str__(self) -> str:
        return " or ".join(map(str, self.parts))


def all_of(parts: list[Predicate]) -> Predicate:
    """The conjunction, flat: `(a and b) and c` is `a and b and c`."""
    flat = [leaf for part in parts for leaf in (part.parts if isinstance(part, And) else (part,))]
    return flat[0] if len(flat) == 1 else And(tuple(flat))


def any_of(parts: list[Predicate]) -> Predicate:
    """The disjunction, flat."""
    flat = [leaf for part in parts for leaf in (part.parts if isinstance(part, Or) else (part,))]
    return flat[0] if len(flat) == 1 else Or(tuple(flat))


def _wrapped(part: Predicate, *looser: type[Predicate]) -> str:
    """The part's text, in parentheses if it binds more loosely than what is around it."""
    return f"({part})" if isinstance(part, looser) else str(part)
