"""The one tree of errors: what must not happen.

What may happen is a value (a late message is a `Dropped` row). An error is either ours to report
to the person who wrote a file (`ConfigError`), theirs to hear on the wire (`WireError`), or a
mistake in a text they typed (`SyntaxFault`); each message is one paragraph that says what is
accepted.
"""

from __future__ import annotations

SHOWN_CHARACTERS = 60  # of a long text, on each side of the fault


class TidingsError(Exception):
    """The root: catching it catches every error this project raises on purpose."""


class ConfigError(TidingsError):
    """A file, option or parameter that cannot be used, found before anything runs."""

    def __init__(self, source: str, field: str, value: object, accepted: str) -> None:
        self.source, self.field, self.value, self.accepted = source, field, value, accepted
        super().__init__(f"{source}: {field} is {value!r}, but accepted is: {accepted}.")


def first_line(error: BaseException) -> str:
    """What an error of somebody else's says, as far as it fits into a sentence of ours."""
    return str(error).strip().partition("\n")[0]


class SyntaxFault(TidingsError):
    """A text (topic, filter, predicate) with a fault at one character, which the message shows."""

    what = "text"

    def __init__(self, text: str, position: int, problem: str) -> None:
        self.text, self.position, self.problem = text, position, problem
        start = max(0, position - SHOWN_CHARACTERS)
        shown = "".join(c if c.isprintable() else "?" for c in text[start:][: 2 * SHOWN_CHARACTERS])
        pointer = " " * (position - start + 2) + "^"
        super().__init__(
            f"bad {self.what} at character {position + 1}: {problem}\n  {shown}\n{pointer}"
        )


class TopicError(SyntaxFault):
    what = "topic"


class FilterError(SyntaxFault):
    what = "topic filter"


class PredicateError(SyntaxFault):
    what = "where predicate"


class WireError(TidingsError):
    """Bytes from a peer that no correct peer sends; `code` is what the protocol answers with."""

    def __init__(self, problem: str, code: int = 0) -> None:
        self.problem, self.code = problem, code
        super().__init__(problem)


class CheckFailed(TidingsError):
    """A run broke a law that every run must keep; the seed in the message is the bug report."""
