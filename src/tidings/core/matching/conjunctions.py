"""Which conjunctions of simple conditions does a predicate amount to?

A predicate is true if and only if one of its conjunctions is. Negation goes down to the comparisons
(exact here, see `tidings.core.predicate`), `or` unites, `and` multiplies out. Every condition on a
number becomes one of three: equal to a constant, below a limit, or from a limit on; `x <= c` is
"below the next float after c", so limits of both kinds compare alike. Where a part has no such form
(an order of strings) or multiplying out would exceed MAX_CONJUNCTIONS, the conjunction says
`residual`: whoever passes the rest of it must be evaluated directly.
"""

from __future__ import annotations

import math
from functools import lru_cache
from itertools import product
from typing import Final, Literal, assert_never, cast

from msgspec import Struct

from tidings.core.predicate.expressions import (
    NEGATED,
    And,
    Attributes,
    Comparison,
    Membership,
    Not,
    Operator,
    Or,
    Predicate,
)
from tidings.core.predicate.values import READERS, Constant, Kind, as_number

MAX_CONJUNCTIONS = 64  # rows that one subscription may take in the index

Side = Literal["below", "from"]
Term = tuple[Literal["equal", "below", "from", "residual"], str, Kind]
Box = dict[Term, Constant]
"""The terms of one conjunction, each with its constant or limit."""

_RESIDUAL: Final[Box] = {("residual", "", "boolean"): True}


class Shape(Struct, frozen=True):
    """What conjunctions have in common that differ only in their constants and limits."""

    equal: tuple[tuple[str, Kind], ...] = ()
    bounds: tuple[tuple[str, Side], ...] = ()
    residual: bool = False

    def anchor(self) -> str | None:
        """An attribute without which no conjunction of this shape is true, if there is one."""
        return next((attribute for attribute, _ in (*self.equal, *self.bounds)), None)

    def read(self, attributes: Attributes) -> tuple[tuple[Constant, ...], list[float]] | None:
        """The message's values for the equalities and bounds; None if one cannot be read."""
        constants = [READERS[kind](attributes.get(attribute)) for attribute, kind in self.equal]
        numbers = [as_number(attributes.get(attribute)) for attribute, _ in self.bounds]
        if None in constants or None in numbers:
            return None
        return cast(tuple[Constant, ...], tuple(constants)), cast(list[float], numbers)


class Conjunction(Struct, frozen=True):
    """One alternative of a predicate: a shape and what fills it."""

    shape: Shape = Shape()
    constants: tuple[Constant, ...] = ()
    limits: tuple[float, ...] = ()


ALWAYS: Final = Conjunction()
"""What a subscription without a predicate asks: nothing."""


def conjunctions(predicate: Predicate | None) -> list[Conjunction]:
    """The alternatives of a predicate; none of them twice, and none that contradicts itself."""
    if predicate is None:
        return [ALWAYS]
    return list(dict.fromkeys(map(_conjunction, _boxes(predicate, negated=False))))


def _conjunction(box: Box) -> Conjunction:
    terms = tuple(sorted(box))
    constants = tuple(box[term] for term in terms if term[0] == "equal")
    limits = tuple(cast(float, box[term]) for term in terms if term[0] in ("below", "from"))
    return Conjunction(_shape(terms), constants, limits)


@lru_cache(maxsize=1024)  # subscriptions by the thousand share a few shapes
def _shape(terms: tuple[Term, ...]) -> Shape:
    return Shape(
        equal=tuple((attribute, kind) for what, attribute, kind in terms if what == "equal"),
        bounds=tuple(
            (attribute, what) for what, attribute, _ in terms if what == "below" or what == "from"
        ),
        residual=any(what == "residual" for what, _, _ in terms),
    )


def _boxes(predicate: Predicate, negated: bool) -> list[Box]:
    match predicate:
        case Comparison(attribute, operator, kind, constant):
            return _compared(attribute, NEGATED[operator] if negated else operator, kind, constant)
        case Membership():
            return _listed(predicate, predicate.negated is not negated)
        case Not(operand):
            return _boxes(operand, not negated)
        case And(parts) | Or(parts):
            combined = _united if isinstance(predicate, Or) is not negated else _multiplied
            return combined([_boxes(part, negated) for part in parts])
        case _:
            raise TypeError(f"not a predicate: {predicate!r}")


def _compared(attribute: str, operator: Operator, kind: Kind, constant: Constant) -> list[Box]:
    if operator == "==":
        return [{("equal", attribute, kind): constant}]
    if kind == "number":
        return _bounded(attribute, operator, cast(float, constant))
    if kind == "boolean":  # only != is left, and there is only one other value
        return [{("equal", attribute, kind): not constant}]
    return [_RESIDUAL]


def _bounded(
    attribute: str, operator: Literal["!=", "<", "<=", ">", ">="], constant: float
) -> list[Box]:
    after = math.nextafter(constant, math.inf)
    match operator:
        case "<":
            return [{("below", attribute, "number"): constant}]
        case "<=":
            return [{("below", attribute, "number"): after}]
        case ">":
            return [{("from", attribute, "number"): after}]
        case ">=":
            return [{("from", attribute, "number"): constant}]
        case "!=":
            return [
                {("below", attribute, "number"): constant},
                {("from", attribute, "number"): after},
            ]
        case _:
            assert_never(operator)


def _listed(membership: Membership, excluded: bool) -> list[Box]:
    operator: Operator = "!=" if excluded else "=="
    alternatives = [
        _compared(membership.attribute, operator, membership.kind, constant)
        for constant in membership.constants
    ]
    return _multiplied(alternatives) if excluded else _united(alternatives)


def _united(alternatives: list[list[Box]]) -> list[Box]:
    boxes = [box for part in alternatives for box in part]
    return boxes if len(boxes) <= MAX_CONJUNCTIONS else [_RESIDUAL]


def _multiplied(alternatives: list[list[Box]]) -> list[Box]:
    result: list[Box] = [{}]
    for part in alternatives:
        if len(result) * len(part) > MAX_CONJUNCTIONS:  # keep what narrows most, check the rest
            part, result = [_RESIDUAL], min(result, part, key=len)
        joined = [_joined(left, right) for left, right in product(result, part)]
        result = [box for box in joined if box is not None]
    return result


def _joined(left: Box, right: Box) -> Box | None:
    """Both at once; None if they contradict each other."""
    box = dict(left)
    for term, constant in right.items():
        known = box.setdefault(term, constant)
        if known == constant:
            continue
        if term[0] == "equal":
            return None
        tighter = min if term[0] == "below" else max
        box[term] = tighter(cast(float, known), cast(float, constant))
    return None if any(_is_empty(box, attribute) for _, attribute, _ in right) else box


def _is_empty(box: Box, attribute: str) -> bool:
    """Whether no number of this attribute lies within the bounds."""
    below = cast(float, box.get(("below", attribute, "number"), math.inf))
    return cast(float, box.get(("from", attribute, "number"), -math.inf)) >= below
