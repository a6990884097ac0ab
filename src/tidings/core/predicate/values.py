"""How is an attribute's value read beside a literal, and how is a literal written?

A reader gives the value in the literal's type, or None where it cannot be read so. Numbers are
64-bit floats on both sides, so integers beyond 2**53 compare as their nearest float; only finite
ones count, which is how NaN never matches.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from typing import Final, Literal

Kind = Literal["number", "string", "boolean"]
Constant = float | str | bool

NUMBER_PATTERN: Final = r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER = re.compile(NUMBER_PATTERN)
_BOOLEANS = {"true": True, "false": False}


def as_number(value: object) -> float | None:
    """The finite number that the value is or spells."""
    if isinstance(value, str):
        if _NUMBER.fullmatch(value) is None:
            return None
    elif not isinstance(value, (float, int)) or isinstance(value, bool):
        return None
    try:
        number = float(value)
    except OverflowError:  # an integer beyond the largest float
        return None
    return number if math.isfinite(number) else None


def as_string(value: object) -> str | None:
    """The value if it is a string."""
    return value if isinstance(value, str) else None


def as_boolean(value: object) -> bool | None:
    """The boolean that the value is or spells."""
    if isinstance(value, str):
        return _BOOLEANS.get(value)
    return value if isinstance(value, bool) else None


READERS: Final[dict[Kind, Callable[[object], Constant | None]]] = {
    "number": as_number,
    "string": as_string,
    "boolean": as_boolean,
}


def literal_text(kind: Kind, constant: Constant) -> str:
    """The canonical way to write a literal; reading it gives the same constant."""
    if kind == "number":
        return repr(constant).removesuffix(".0")
    return json.dumps(constant, ensure_ascii=False)
