"""Does a subscriber want this message, by its content? The `where` language.

    altitude < 3000 and kind == "jet"
    not (phase in ("taxi", "parked")) or emergency == true

The language
------------
A predicate compares attributes of a message with literals: `== != < <= > >=`, `in (...)`,
`not in (...)`, joined by `and`, `or`, `not` (which binds tightest) and parentheses. A name starts
with a letter or `_` and may have dots and dashes inside (`position.lat`, `deadline-ms`).

The literal decides how the attribute is read
---------------------------------------------
MQTT user properties are always strings. So (`values`) beside a number, an attribute may be a number
or a string that spells one; beside a string, only a string; beside `true`/`false`, a boolean or the
strings `true`/`false`.

What cannot be read is unknown, and unknown never matches
---------------------------------------------------------
An attribute that is missing, of another type, NaN or infinite makes its comparison neither true nor
false. `and`, `or` and `not` follow Kleene's three-valued logic (as SQL's WHERE does), so
`not (x < 3)` does not match a message without `x` either, and `not` can always be pushed down to
the comparisons: `not (x < 3)` and `x >= 3` mean the same on every message.
"""

from tidings.core.predicate.expressions import (
    And,
    Attributes,
    Comparison,
    Membership,
    Not,
    Or,
    Predicate,
)
from tidings.core.predicate.lexer import MAX_LENGTH
from tidings.core.predicate.parser import MAX_DEPTH, parse

__all__ = [
    "MAX_DEPTH",
    "MAX_LENGTH",
    "And",
    "Attributes",
    "Comparison",
    "Membership",
    "Not",
    "Or",
    "Predicate",
    "parse",
]
